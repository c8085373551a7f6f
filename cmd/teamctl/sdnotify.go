package main

import (
	"net"
	"os"
)

// sdNotifier returns a function that notifies the service manager, if one started this process, of
// "READY=1" and "STOPPING=1"; see sd_notify(3). The variable is removed from the environment:
// agents must not notify in the supervisor's name.
func sdNotifier() func(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return func(string) error { return nil }
	}
	_ = os.Unsetenv("NOTIFY_SOCKET")
	if path[0] == '@' { // an abstract socket
		path = "\x00" + path[1:]
	}
	return func(state string) error {
		conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		_, err = conn.Write([]byte(state))
		return err
	}
}
