//go:build !linux

package confine

// Supported is an error: only Linux has Landlock.
func Supported() error { return ErrUnsupported }

// Enter is an error: only Linux has Landlock.
func (Confinement) Enter() error { return ErrUnsupported }
