package main

import (
	"net"
	"os"
)

// sdNotifier returns what tells the service manager that started us, if one did,
// what it may know: "READY=1", "STOPPING=1". See sd_notify(3). The variable is
// taken out of the environment: our agents must not speak in our name.
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
