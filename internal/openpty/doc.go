// Package openpty opens pseudoterminals.
//
// github.com/creack/pty v1.1.24 passes the address of a variable on the stack to the kernel
// as a number. A stack that moves at that moment leaves the number of the terminal at 0, and
// /dev/pts/0, which may be the terminal of a person, is opened for the new master. Its
// pull request 215 puts that right and is in no release yet, so that on Linux the two calls
// are made here.
package openpty

import (
	"fmt"
	"os"
)

// Open opens a new pseudoterminal. Both ends are closed at an exec. The master does not
// block, so that Close ends a Read of it; the slave does, as programs expect.
func Open() (master, slave *os.File, err error) {
	if master, slave, err = open(); err != nil {
		return nil, nil, fmt.Errorf("open a pseudoterminal: %w", err)
	}
	return master, slave, nil
}
