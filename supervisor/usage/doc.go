// Package usage keeps account of what the members of a team use, and acts on its limits: it warns of
// a budget and breaks off the turns of those whose budget is used up, and it opens the breaker of an
// agent's provider when one of its members has run into a limit, closes it when its time has come,
// and tells those whose turn the limit has broken off to go on.
//
// What is set and known is in settings of the ledger, which package quota reads and writes; whoever
// starts a member or gives it a prompt asks quota. Usage is a service of the loop (package loop). It
// keeps in memory the counts of the last seconds: an agent counts each conversation from zero, so a
// count that a kill has lost comes again with the next one.
package usage
