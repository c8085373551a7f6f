package teamctl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/teamctl/teamctl"
	"github.com/teamctl/teamctl/ledger"
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
	program, err := built() // and Program
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	env, err := teamctl.New(teamctl.Options{Home: home, Program: []string{program}})
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
	spawned, err := t.Spawn(ctx, me, tool.SpawnIn{Name: "builder", MemberSpec: team.MemberSpec{Backend: "pty"}})
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
	stopped, err := t.Stop(ctx, me, team.StopRequest{Remove: true, Wait: 5 * time.Minute})
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
	env, err := teamctl.New(teamctl.Options{Home: home, Program: []string{"teamctl"}})
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

// A program that was not spawned joins a team as a member: it takes a task, does it, and
// reports the result.
func Example_join() {
	ctx, t, done := demo()
	defer done()
	if _, err := t.TaskAdd(ctx, tool.Person(), tool.TaskAddIn{Tasks: []ledger.NewTask{
		{Subject: "write the parser", Ref: "parser"},
		{Subject: "test the parser", DependsOn: []string{"parser"}},
	}}); err != nil {
		log.Fatal(err)
	}
	me := join(ctx, t, "ci")
	for {
		task, err := t.TaskClaim(ctx, me, "") // the next one that is ready
		if err != nil {
			log.Fatal(err)
		}
		if task == nil {
			break
		}
		completed, err := t.TaskComplete(ctx, me, task.ID, task.Attempt, ledger.Result{Summary: "done"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(completed.ID, completed.Subject, completed.Status)
	}
	// Output:
	// 1 write the parser completed
	// 2 test the parser completed
}

// Messages are stored before Send returns. A recipient that is killed while it handles
// its mail gets the same mail again.
func Example_messages() {
	ctx, t, done := demo()
	defer done()
	ann, bob := join(ctx, t, "ann"), join(ctx, t, "bob")
	sent, err := t.Send(ctx, ann, tool.SendIn{Type: "message", Recipient: "bob", Content: "the parser is ready"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sent.Deliveries[0].Recipient, sent.Deliveries[0].State)
	err = t.InboxConsume(ctx, bob, func(mail tool.InboxOut) error {
		for _, m := range mail.Entries {
			fmt.Printf("%s: %s\n", m.From, m.Text)
		}
		return nil // the mail is read from here on
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// bob mailed
	// ann: the parser is ready
}

// A member asks for permission, and waits until a person answers.
func Example_approvals() {
	ctx, t, done := demo()
	defer done()
	asked, err := t.AskPermission(ctx, join(ctx, t, "ci"), tool.PermissionIn{
		ToolName: "Bash", Description: "publish the package", Input: json.RawMessage(`{"command": "npm publish"}`),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(asked.Subject)
	if _, err := t.Answer(ctx, tool.Person(), tool.AnswerIn{ID: fmt.Sprint(asked.ID), Feedback: "not before Monday"}); err != nil {
		log.Fatal(err)
	}
	_, err = t.AwaitApproval(ctx, asked.ID, time.Minute)
	fmt.Println(team.CodeOf(err), err)
	// Output:
	// Bash: publish the package
	// denied permission 1 was rejected: not before Monday
}

// Every change of a team is an event. A program that remembers the number of the last one
// that it has seen misses none.
func Example_events() {
	ctx, t, done := demo()
	defer done()
	if _, err := t.TaskAdd(ctx, tool.Person(), tool.TaskAddIn{Tasks: []ledger.NewTask{{Subject: "vet"}}}); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	err := t.Follow(ctx, 0, func(e ledger.Event) error {
		fmt.Println(e.Who, e.What, e.ID)
		if e.What == "task.created" {
			stop()
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
	// Output:
	// team-lead team.created demo
	// team-lead run.started 1
	// team-lead member.added team-lead
	// team-lead task.created 1
}
