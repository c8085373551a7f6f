package proc

// Dying reports whether a process that still is one will run no more; macOS does not
// tell before it is a zombie.
func Dying(int) bool { return false }
