package inbox

import (
	"fmt"
	"strings"
)

// Describe words a protocol message for a model. It includes ids that an answer
// must name; names come from the frame, so show it only for a message with a
// verified sender.
func Describe(f Frame) string {
	switch f := f.(type) {
	case ShutdownRequest:
		return joinLines("You are asked to shut down."+because(f.Reason),
			fmt.Sprintf("Answer with a shutdown_response for request_id %q: approve true to end now, or approve false with the reason why you go on.", f.RequestID))
	case ShutdownApproved:
		return fmt.Sprintf("Shutdown approved (request_id %q): this teammate ends now.", f.RequestID)
	case ShutdownRejected:
		return fmt.Sprintf("Shutdown rejected (request_id %q): this teammate goes on.%s", f.RequestID, because(f.Reason))
	case IdleNotification:
		return describeIdle(f)
	case TaskAssignment:
		return joinLines(fmt.Sprintf("Task #%s is assigned to you: %s", f.TaskID, f.Subject), f.Description)
	case TaskCompleted:
		text := fmt.Sprintf("Teammate %s completed task %s: %s", f.From, f.TaskID, f.TaskSubject)
		if len(f.ReadyTasks) > 0 {
			text += "\nReady now: " + strings.Join(f.ReadyTasks, ", ")
		}
		return text
	case PermissionRequest:
		return joinLines(
			fmt.Sprintf("Permission is asked to use %s (request_id %q).", f.ToolName, f.RequestID),
			f.Description, "Input: "+string(f.Input))
	case PermissionResponse:
		if f.Approve {
			return fmt.Sprintf("Permission granted (request_id %q).", f.RequestID)
		}
		return fmt.Sprintf("Permission refused (request_id %q).%s", f.RequestID, because(f.Error))
	case PlanApprovalRequest:
		return joinLines(
			fmt.Sprintf("A plan waits for approval (request_id %q, file %s):", f.RequestID, f.PlanFilePath), f.PlanContent)
	case PlanApprovalResponse:
		if f.Approved {
			return fmt.Sprintf("[Plan Approved] (request_id %q) You can now proceed with the implementation.", f.RequestID)
		}
		return strings.TrimRight(fmt.Sprintf("[Plan Rejected] (request_id %q) %s", f.RequestID, f.Feedback), " ")
	case TeammateTerminated:
		return f.Message
	}
	return string(f.Kind())
}

func describeIdle(f IdleNotification) string {
	var lines []string
	switch {
	case f.FailureReason != "":
		lines = append(lines, "This teammate failed: "+f.FailureReason)
	case f.IdleReason == IdleFailed:
		lines = append(lines, "This teammate failed.")
	case f.IdleReason == IdleInterrupted:
		lines = append(lines, "This teammate was interrupted and is idle.")
	default:
		lines = append(lines, "This teammate is idle and ready for new work.")
	}
	if f.CompletedTaskID != "" {
		lines = append(lines, strings.TrimRight(fmt.Sprintf("Task #%s: %s", f.CompletedTaskID, f.CompletedStatus), ": "))
	}
	return joinLines(append(lines, f.Summary, f.Result)...)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " Reason: " + reason
}

// joinLines joins the non-empty lines.
func joinLines(lines ...string) string {
	kept := lines[:0:0]
	for _, l := range lines {
		if l != "" {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}
