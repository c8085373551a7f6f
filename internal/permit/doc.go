// Package permit decides on permission requests by the rules of a team: denied,
// allowed, or left to a person. It reads the file system and changes nothing.
//
// The rules are a convenience and no sandbox: what an allowed command does is its own
// affair. So whatever is in doubt is left to a person.
//
//   - Rules that deny come first, whatever the order in the file.
//   - A rule with a path allows a request only if all of its files match, and denies
//     it if any of them does. One that denies files, asked about a tool whose files are
//     not known, keeps the request from being allowed by another rule; likewise one
//     that denies commands.
//   - What a path leads to counts, links followed: one that leads out of the member's
//     directory is not inside it. A path with ".." is allowed nothing. Rules that deny
//     count for the path as it was written too, and whatever the case of its letters.
//   - A command with operators (";", "&&", "|", ">", "$(...)", a second line) is not
//     what "go test *" allows: only a rule with the very text, or without a command,
//     allows it. Of rules that deny, each part of it is looked at.
//   - A member in plan mode, or in delegate mode, is allowed nothing by a rule.
package permit
