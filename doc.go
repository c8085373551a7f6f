// Package teamctl runs teams of coding agents from a Go program: every operation of the
// command line, without the command line.
//
//	env, err := teamctl.New(teamctl.Options{})
//	_, err = env.TeamCreate(ctx, tool.Person(), tool.TeamCreateIn{TeamName: "demo", Repo: "."})
//	t, err := env.Open(ctx, "demo")
//	defer t.Close()
//	_, err = t.Spawn(ctx, tool.Person(), tool.SpawnIn{Name: "builder"})
//
// [New] needs the teamctl program on this machine: the supervisor of a team, its agents'
// shims and its built-in workers are processes of that program and outlive the caller.
// Several programs and people may use one team at the same time.
//
// The operations and their errors are documented in package [tool], the records that
// they return in package [ledger], the words (names, states, roles, error codes) in
// package [team]. A *team.Error has a code, a reason for programs and a hint for people.
// Tasks, members, events and messages are read from Team.Ledger; Team.Follow calls back
// for every event.
package teamctl
