package tool

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// MailCompleted mails the notice that the ledger has posted to the lead at the completion of a
// task. If it is interrupted, the supervisor mails the notice.
func (t *Team) MailCompleted(ctx context.Context, c Caller, task ledger.Task) {
	if task.Status != team.TaskCompleted || task.OwnerName == "" {
		return
	}
	list, err := t.Ledger.Messages(ctx, ledger.MessageFilter{Kind: team.KindTaskCompleted, From: task.OwnerName, Newest: true, Limit: 10})
	if err != nil {
		return
	}
	key := ledger.TaskCompletedKey(task.ID, task.Attempt)
	i := slices.IndexFunc(list, func(m ledger.Message) bool { return m.IdemKey == key })
	if i < 0 {
		return
	}
	if ds, err := t.Ledger.Deliveries(ctx, list[i].ID); err == nil {
		t.mailer(c).Deliver(ctx, ds)
		t.carry(ctx, ds)
	}
}
