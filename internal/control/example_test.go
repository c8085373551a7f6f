package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// A whole session: a team with one built-in worker, which needs no model, does two
// tasks, the second after the first.
func Example() {
	home, done, err := place() // your program leaves Home empty
	if err != nil {
		log.Fatal(err)
	}
	defer done()
	teamctl, err := control.Built() // and Program
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	env, err := control.New(control.Options{Home: home, Program: []string{teamctl}})
	if err != nil {
		log.Fatal(err)
	}
	me := tool.Person()
	if _, err := env.TeamCreate(ctx, me, tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		log.Fatal(err)
	}
	t, err := env.Open(ctx, "demo")
	if err != nil {
		log.Fatal(err)
	}
	added, err := t.TaskAdd(ctx, me, tool.TaskAddIn{Tasks: []ledger.NewTask{
		{Ref: "greet", Subject: "greet", Metadata: json.RawMessage(`{"run": "echo hello"}`)},
		{Subject: "part", DependsOn: []string{"greet"}, Metadata: json.RawMessage(`{"run": "echo goodbye"}`)},
	}})
	if err != nil {
		log.Fatal(err)
	}
	spawned, err := t.Spawn(ctx, me, tool.SpawnIn{Name: "builder", Backend: "pty"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("spawned", spawned[0].AgentID)
	last, err := t.Wait(ctx, tool.WaitIn{})
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range last.Tasks {
		fmt.Println(task.ID, task.Subject, task.Status, "by", task.OwnerName)
	}
	stopped, err := t.Stop(ctx, me, supervisor.StopIn{Remove: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stopped[0].Name, stopped[0].Outcome)
	if err := t.Close(); err != nil {
		log.Fatal(err)
	}
	if _, err := env.Delete(ctx, me, "demo", tool.DeleteIn{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(added), "tasks done")
	// Output:
	// spawned builder@demo
	// 1 greet completed by builder
	// 2 part completed by builder
	// builder approved
	// 2 tasks done
}

// Errors carry a code, a reason for programs and a hint for people.
func ExampleNew_errors() {
	home, done, err := place()
	if err != nil {
		log.Fatal(err)
	}
	defer done()
	env, err := control.New(control.Options{Home: home, Program: []string{"teamctl"}})
	if err != nil {
		log.Fatal(err)
	}
	_, err = env.Open(context.Background(), "nosuch")
	fmt.Println(team.CodeOf(err), team.ReasonOf(err))
	fmt.Println(team.HintOf(err))
	// Output:
	// not_found team_not_found
	// there is no team yet: teamctl create nosuch --repo .
}
