// Package oracle compares what package model makes of the providers' protocols with what
// the vendors' own libraries make of them. It is a module of its own, so that nothing of
// theirs is in the program.
//
//	go test ./...
package oracle
