package control

import (
	"log/slog"
	"net"
	"os"
	"syscall"
)

// peers accepts only connections of our own uid: the directory is private
// already, this holds if somebody opens it up.
type peers struct {
	net.Listener
	log *slog.Logger
}

func (p peers) Accept() (net.Conn, error) {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUID(c); err != nil || uid != os.Getuid() {
			p.log.Warn("refused a peer", "uid", uid, "err", err)
			_ = c.Close()
			continue
		}
		return c, nil
	}
}

func ownedByUs(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
