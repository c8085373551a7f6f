package control

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/team"
)

// Ping returns once the team's supervisor has answered, or with an error when its connection or
// ctx has ended. It waits without a clock: while a supervisor is stopped the kernel keeps the
// connection, and the supervisor answers when it continues.
func Ping(ctx context.Context, l team.Layout) error {
	conn, err := dialSocket(ctx, l.Socket())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	_, err = askPing(conn, fileid.At(l.Ledger()))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
