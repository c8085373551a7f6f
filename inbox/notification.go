package inbox

import (
	"fmt"
	"strings"
)

// NoticeStatus is the status of a teammate in a notice.
type NoticeStatus string

// The statuses of a notice.
const (
	NoticeCompleted NoticeStatus = "completed"
	NoticeFailed    NoticeStatus = "failed"
	NoticeKilled    NoticeStatus = "killed"
	NoticeIdle      NoticeStatus = "idle"
)

// NoticeMessage returns the sentence of a notice; why is the reason of a
// failure.
func NoticeMessage(s NoticeStatus, name, why string) string {
	switch s {
	case NoticeCompleted:
		return fmt.Sprintf("Teammate %q completed their task.", name)
	case NoticeFailed:
		return fmt.Sprintf("Teammate %q failed: %s", name, why)
	case NoticeKilled:
		return fmt.Sprintf("Teammate %q was stopped.", name)
	case NoticeIdle:
	}
	return fmt.Sprintf("Teammate %q is idle and ready for new work.", name)
}

// TaskNotification is a notice in the form in which it enters the lead's
// conversation.
type TaskNotification struct {
	TaskID     string // the task it concerns, otherwise the agent id
	OutputFile string // file with the teammate's terminal output
	Status     NoticeStatus
	Message    string
}

// String returns the element, with tags in its values escaped, and the sentence
// that names the file to read.
func (n TaskNotification) String() string {
	var b strings.Builder
	b.WriteString("<task_notification>\n")
	for _, e := range [][2]string{
		{"task_id", n.TaskID}, {"output_file", n.OutputFile}, {"status", string(n.Status)}, {"message", n.Message},
	} {
		b.WriteString("<" + e[0] + ">" + inElement(clean(e[1], e[0] != "message")) + "</" + e[0] + ">\n")
	}
	b.WriteString("</task_notification>\nRead the output file to retrieve the result: " + inElement(clean(n.OutputFile, true)))
	return b.String()
}

// notification converts a protocol message that is a notice to that form; ok is
// false for all others, and if the output file is unknown.
func notification(f Frame, a Attributes, limit int) (n TaskNotification, ok bool) {
	if a.OutputFile == "" || a.Unverified || f.Kind() != a.Kind {
		return n, false
	}
	n = TaskNotification{TaskID: a.AgentID, OutputFile: a.OutputFile}
	switch f := f.(type) {
	case TeammateTerminated:
		n.Status, n.Message = f.Status, f.Message
		if n.Status == "" {
			n.Status = NoticeKilled
		}
	case IdleNotification:
		n.Status = NoticeIdle
		if f.IdleReason == IdleFailed {
			n.Status = NoticeFailed
		}
		if f.CompletedTaskID != "" {
			n.TaskID = f.CompletedTaskID
		}
		n.Message = joinLines(NoticeMessage(n.Status, a.TeammateID, f.FailureReason), idleDetails(f, n.Status))
	default:
		return n, false
	}
	var cut int
	if n.Message, cut = shorten(n.Message, limit); cut > 0 {
		n.Message += fmt.Sprintf("\n[%d more bytes were left out; the whole text is in your mailbox]", cut)
	}
	return n, true
}

// idleDetails returns what an idle notification contains beyond the sentence of
// its notice.
func idleDetails(f IdleNotification, s NoticeStatus) string {
	var task, failed, interrupted string
	if f.CompletedTaskID != "" {
		task = strings.TrimRight(fmt.Sprintf("Task #%s: %s", f.CompletedTaskID, f.CompletedStatus), ": ")
	}
	if s == NoticeIdle && f.FailureReason != "" {
		failed = "It failed: " + f.FailureReason
	}
	if f.IdleReason == IdleInterrupted {
		interrupted = "It was interrupted."
	}
	return joinLines(interrupted, task, failed, f.Summary, f.Result)
}
