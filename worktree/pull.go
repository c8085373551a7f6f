package worktree

import (
	"context"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// PullText collects it; it fetches and pushes nothing.
func (r *Repo) PullText(ctx context.Context, branch, target string) (team.PullText, error) {
	var p team.PullText
	tip, err := r.Resolve(ctx, "refs/heads/"+branch)
	if err != nil {
		return p, err
	}
	base, err := r.tipOf(ctx, target)
	if err != nil {
		return p, err
	}
	out, err := r.read(ctx, "log", "--reverse", "--no-merges", "--no-show-signature", "--format=%s", base+".."+tip)
	if err != nil {
		return p, failed("read the commits of "+branch, err)
	}
	p.Subjects = lines(out, '\n')
	if out, err = r.read(ctx, append(slices.Clone(plainDiff), "--stat=100", base+"..."+tip)...); err != nil {
		return p, failed("compare "+branch+" with "+target, err)
	}
	p.Stat = string(out)
	if out, err = r.read(ctx, "remote"); err != nil {
		return p, failed("list the remotes of "+r.root, err)
	}
	remotes := lines(out, '\n')
	if len(remotes) == 0 {
		return p, nil
	}
	p.Remote = remotes[0]
	for _, name := range remotes {
		if name == "origin" {
			p.Remote = name
		}
	}
	if out, err = r.read(ctx, "config", "--get", "remote."+p.Remote+".url"); err == nil {
		p.URL = withoutPassword(oneLine(out))
	} else if exitStatus(err) != 1 {
		return p, failed("read the remote "+p.Remote, err)
	}
	at, err := r.Resolve(ctx, "refs/remotes/"+p.Remote+"/"+branch)
	p.Pushed = err == nil && at == tip
	return p, nil
}

func withoutPassword(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	return scheme + "://" + host + "/" + path
}
