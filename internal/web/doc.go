// Package web serves the page of a person's teams. It reads and acts through the interfaces of
// package view, so by itself it can neither lose nor change anything, and it never types into an
// agent.
//
// A client that reaches the address of the page is not trusted:
//
//   - Every request but those for a login and for assets needs a session. A session begins with a
//     code that works once, within CodeLife, and is a cookie that no script can read and no other
//     site can send. The file of a Store has hashes of codes and sessions only.
//   - The Host of every request must be one that the page is served under, so that a name of
//     another site that resolves to this machine gets nothing (DNS rebinding). An Origin must be
//     that of the page.
//   - A change is a POST with JSON, an Origin, and a token that only a document of the page has.
//   - Documents may load the page's own script and style, and nothing else.
//
// An answer names the request and the hash of what was shown. A client that shows an older
// request, or one that has been answered, is told so and changes nothing.
package web
