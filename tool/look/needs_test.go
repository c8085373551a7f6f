package look

import (
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestLimitSince checks that the need of a provider at its limit has the time since when, and that there is none
// once the limit has ended.
func TestLimitSince(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	list := usage(tool.Usage{Limited: []tool.LimitedAgent{
		{Agent: "claude", ProviderLimit: team.ProviderLimit{Since: since.UnixMilli(), Until: since.Add(2 * time.Hour).UnixMilli()}},
		{Agent: "codex", ProviderLimit: team.ProviderLimit{Since: since.UnixMilli(), Ended: since.Add(time.Hour).UnixMilli()}},
	}}, since.Add(time.Minute))
	if len(list) != 1 || list[0].Kind != view.NeedLimit || !list[0].Since.Equal(since) || list[0].Text != "claude has reached its usage limit, until 14:00" {
		t.Errorf("%+v", list)
	}
}
