// Package usage records the usage of a team's members and enforces its limits: it warns about a
// budget and interrupts the turns of members whose budget is used up. It opens the breaker of an
// agent's provider when one of its members has reached a limit, closes it at the end of the limit,
// and makes members whose turn the limit interrupted continue.
//
// Package quota reads and writes the data in settings of the ledger; whatever starts a member or
// gives it a prompt consults quota. Usage is a service of the loop (package loop). It keeps the
// counts of the last seconds in memory: an agent counts each conversation from zero, so a count
// lost by a kill is contained in the next one. What it writes then has the last conversations of the
// members that are here; see quota.Spent for the others.
package usage
