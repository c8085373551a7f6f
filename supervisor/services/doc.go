// Package services has the concerns of a supervisor that change no member: each reads the ledger
// and the roster, and works beside them. The supervisor's core starts the services, passes every
// event of the ledger to them, and closes them with its loop.
//
// Package loop defines a service and the goroutine that runs it.
package services
