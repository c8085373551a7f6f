package codex

import (
	"context"
	"time"
)

func (a *appServer) connect(ctx context.Context) (*rpc, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return dialRPC(ctx, a.f.Link.Socket)
}

func (a *appServer) hello(ctx context.Context, conn *rpc) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return conn.hello(ctx, nil)
}
