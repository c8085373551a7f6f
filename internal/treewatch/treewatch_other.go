//go:build !linux

package treewatch

// Watch reports no events on this system.
type Watch struct{}

// New returns ErrUnsupported.
func New(func(key string)) (*Watch, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Watch) Close() {}

// Done returns nil, since there is no watch that could end.
func (*Watch) Done() <-chan struct{} { return nil }

// Arm returns ErrUnsupported.
func (*Watch) Arm(string, []string) error { return ErrUnsupported }

// Drop does nothing.
func (*Watch) Drop(string) {}
