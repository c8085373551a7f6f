//go:build !linux

package confine

// Supported returns an error: only Linux has Landlock.
func Supported() error { return ErrUnsupported }

// Enter returns an error: only Linux has Landlock.
func (Confinement) Enter() error { return ErrUnsupported }
