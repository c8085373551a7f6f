package codex

import (
	"context"
	"errors"
	"maps"
)

// An interrupted turn of Codex leaves its running command in a terminal of the app-server, beside
// those that earlier turns put into the background. Only the notification of a command's start
// names its turn, so commands started before this connection are unknown and are left alone.

// runs records the commands of turns.
func (a *appServer) runs(turn string, i userMessage, ended bool) {
	if i.Type != "commandExecution" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if ended {
		delete(a.commands, i.ID)
	} else {
		a.commands[i.ID] = turn
	}
}

// endCommands ends the running commands of an interrupted turn.
func (a *appServer) endCommands(ctx context.Context, conn *rpc, thread, turn string) error {
	a.mu.Lock()
	mine := maps.Clone(a.commands)
	a.mu.Unlock()
	maps.DeleteFunc(mine, func(_, of string) bool { return of != turn })
	for cursor := any(nil); len(mine) > 0; {
		var out struct {
			Data       []struct{ ItemID, ProcessID string }
			NextCursor any
		}
		err := conn.call(ctx, "thread/backgroundTerminals/list", map[string]any{"threadId": thread, "cursor": cursor}, &out)
		for _, t := range out.Data {
			if _, ok := mine[t.ItemID]; ok && err == nil {
				err = conn.call(ctx, "thread/backgroundTerminals/terminate", map[string]string{"threadId": thread, "processId": t.ProcessID}, nil)
			}
		}
		if no := (*rpcError)(nil); errors.As(err, &no) {
			a.f.Log.Warn("a command of an interrupted turn may run on", "member", a.f.Name, "err", no)
			return nil
		}
		if err != nil || out.NextCursor == nil {
			return err
		}
		cursor = out.NextCursor
	}
	return nil
}
