// Package treewatch reports that something has changed in one of many
// directories, once per arming: a program that writes a thousand times costs
// one event, and a directory that was not armed again costs nothing.
//
// It is implemented for Linux only, where a watch takes a kilobyte of the
// kernel's memory; kqueue would hold a descriptor for every file.
package treewatch

import "errors"

// ErrUnsupported means that this system has no such events.
var ErrUnsupported = errors.New("no events for directory trees on this system")
