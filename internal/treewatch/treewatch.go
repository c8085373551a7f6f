// Package treewatch tells that something has changed in one of many directories,
// once for each time that it is armed: a program that writes a thousand times costs
// one event, and what nobody has asked about again costs nothing.
//
// It has events on Linux only, where a watch is a kilobyte of the kernel's memory;
// kqueue would hold a descriptor for every file.
package treewatch

import "errors"

// ErrUnsupported says that this system has no such events.
var ErrUnsupported = errors.New("no events for directory trees on this system")
