//go:build !linux

package control

import (
	"errors"
	"net"
	"time"
)

// pump is Linux's; elsewhere each connection has a goroutine.
type pump struct{}

func newPump(batcher) (*pump, error) { return nil, errors.ErrUnsupported }

func (*pump) add(net.Conn, []byte) bool { return false }

func (*pump) close(time.Duration) {}
