// Package services has the concerns of a supervisor that change no member: each looks at the
// ledger and at the roster, and does something beside them. The supervisor's core starts them,
// passes every event of the ledger on, and ends them with its loop.
//
// A service belongs to the loop: Start, Event, Close and every function that it hands to its
// Bus run there, one at a time, so its state needs no lock. Whatever may take long (git, a
// program, a write that waits) runs beside the loop by Bus.Go, and its result comes back to the
// loop. A service keeps nothing that a kill may lose: what it owes it finds again in the ledger
// when it starts.
package services
