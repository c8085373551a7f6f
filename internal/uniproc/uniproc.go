// Package uniproc starts a program on one processor. With more, the runtime starts a thread for
// each of its first goroutines, while the packages of the program are initialised one after the
// other: the threads find nothing to do, and a short command pays for each. A program that goes on
// to work in parallel calls Release.
//
// The package imports the runtime only, so it is initialised before nearly all others.
package uniproc

import "runtime"

// before is the limit that the runtime has chosen.
var before = runtime.GOMAXPROCS(1)

// Release restores the limit of the runtime, which follows the limits of the process again unless
// GOMAXPROCS has set it.
func Release() {
	if before == 1 {
		return
	}
	runtime.SetDefaultGOMAXPROCS()
	if runtime.GOMAXPROCS(0) != before { // set by GOMAXPROCS
		runtime.GOMAXPROCS(before)
	}
}
