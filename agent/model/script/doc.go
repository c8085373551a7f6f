// Package script is a model without intelligence: it needs no key, no network and no clock, costs
// nothing, and gives the same answers to the same conversation.
//
// It carries out the script lines of the conversation (package internal/script). Without any it
// works as a member: it claims a task that it is offered or assigned, runs the command in the
// task's metadata.run, completes or fails the task, and answers mail with what it did.
//
// script/demo follows only the conversation. script/FILE first plays the lines of a file, one step
// for each answer.
//
// Everything is read from the conversation of each request, so a resumed session continues where
// it was.
package script
