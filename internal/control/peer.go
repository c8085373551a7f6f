package control

import (
	"log/slog"
	"net"
	"os"

	"github.com/teamctl/teamctl/team"
)

// peers accepts only connections of our own uid. The directory is already private; this also holds
// if it is opened to others.
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

// checkPeer refuses a listener of another user that has taken the place of our socket.
func checkPeer(c net.Conn) error {
	uid, err := peerUID(c)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "identify the peer of the socket: %w", err)
	}
	if uid != os.Getuid() {
		return team.Errorf(team.CodeDenied, "the socket %s belongs to a process of user %d", c.RemoteAddr(), uid).
			WithReason(team.ReasonForeignSupervisor).WithHint("set " + team.EnvRuntime + " to a directory of your own")
	}
	return nil
}
