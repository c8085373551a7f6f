//go:build !linux

package treewatch

// Watch has no events here.
type Watch struct{}

// New is ErrUnsupported.
func New(func(key string)) (*Watch, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Watch) Close() {}

// Done is closed once tell is not called any more: never, for there is no watch.
func (*Watch) Done() <-chan struct{} { return nil }

// Arm is ErrUnsupported.
func (*Watch) Arm(string, []string) error { return ErrUnsupported }

// Drop does nothing.
func (*Watch) Drop(string) {}
