// Package delivery delivers mail to the members of a team and processes observations of them, by the
// channels that a Courier opens.
//
// A generation of a foreign agent has at most one channel. Open opens it when the generation is up
// or adopted, Closed closes it. While it is open the package
//
//   - delivers the member's mail from the ledger (handover.go) and is the only writer of injected,
//     accepted, held and unknown for channels; the documentation of package mail lists the writers of
//     each state of a delivery;
//   - asks about delivered mail without evidence (evidence.go);
//   - processes observations and writes the agent's activity to the member's row (observed.go);
//     package state interprets them;
//   - notifies the lead of each finished turn (turn.go), and cleans up after an interrupted one
//     (interrupts.go);
//   - queues an agent's requests for approval and sends the answers (asks.go).
//
// An agent that reports its own activity has no channel: of its observations only the usage counts.
//
// Delivery is a service of the loop (package loop): all its state belongs to the loop, and it keeps
// nothing that a kill could lose. Hand-overs, answers and interrupts run beside the loop, one at a
// time for each channel, and write to the ledger there, in steps; the loop itself writes only the
// member's row, which must be written in the order of the observations.
package delivery
