package team

// Watcher reports changes in directories. Whatever a process watches can share one: by default
// the kernel gives a user 128 inotify instances.
type Watcher interface {
	// Watch calls tell for every change in dir until stop is called, from one goroutine and never
	// after stop has returned. tell must neither block nor call stop. A missing directory is an
	// error; unavailable events are not.
	Watch(dir string, tell func(FileEvent)) (stop func(), err error)
}

// FileEvent is a change to a file in a watched directory, or to the directory itself.
type FileEvent struct {
	Name    string // path of the file or directory
	Created bool
	Written bool
	Gone    bool // removed, or renamed to another name
	// Lost means that changes were not reported: check for yourself. Poll means the same, once a
	// second, if there are no events. Nothing else is set then.
	Lost, Poll bool
}
