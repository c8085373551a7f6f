// Package delivery brings mail to the members of a team and takes in what is seen of them, by the
// channels that a Courier opens.
//
// A generation of a foreign agent has at most one channel. Open opens it when the generation is
// up or adopted, Closed closes it. While it is open the package
//
//   - hands over what waits in the ledger for the member (handover.go) and is the one that writes
//     injected, accepted, held and unknown for channels; who else writes which state of a delivery
//     the documentation of package mail says;
//   - asks about what was handed over and has no evidence (evidence.go);
//   - takes observations and writes to the member's row what it does (observed.go); package state
//     decides what they mean;
//   - tells the lead of each turn that is over (turn.go), and what an interrupted turn leaves
//     (interrupts.go);
//   - queues what an agent asks for as an approval and brings the answer (asks.go).
//
// An agent that says itself what it does has no channel: its observations are taken for their
// usage only.
//
// Delivery is a service of the loop (package loop): all its state belongs to the loop, and it keeps
// nothing that a kill may lose. A hand-over, an answer and an interrupt run beside the loop, one at
// a time for each channel. What they write to the ledger they write there, in steps; what the loop
// writes by itself is the member's row, which has to be written in the order of the observations.
package delivery
