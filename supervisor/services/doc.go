// Package services has the concerns of a supervisor that change no member: each looks at the
// ledger and at the roster, and does something beside them. The supervisor's core starts them,
// passes every event of the ledger on, and ends them with its loop.
//
// What a service is, and which goroutine runs it, package loop says.
package services
