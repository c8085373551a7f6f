package environ

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Of returns the environment with which a process was executed, each variable
// terminated by NUL; nil if it may not be read. KERN_PROCARGS2 is argc, the
// executable's path, padding, argc arguments, then the environment, all
// terminated by NUL.
func Of(pid int, _ []byte) []byte {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(b) < 4 {
		return nil
	}
	argc := int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return nil
	}
	b = bytes.TrimLeft(b[i:], "\x00")
	for ; argc > 0; argc-- {
		if i = bytes.IndexByte(b, 0); i < 0 {
			return nil
		}
		b = b[i+1:]
	}
	return b
}
