package team

import "slices"

// Reasons of errors. Those that only one package gives may be constants of that package.
const (
	ReasonACP                  = "acp"
	ReasonAgentAmbiguous       = "agent_ambiguous"
	ReasonAlreadyClaimed       = "already_claimed"
	ReasonAlreadyLeading       = "already_leading"
	ReasonAlreadyRunning       = "already_running"
	ReasonBadAgent             = "bad_agent"
	ReasonBadBudget            = "bad_budget"
	ReasonBadCommand           = "bad_command"
	ReasonBadConfig            = "bad_config"
	ReasonBadEnv               = "bad_env"
	ReasonBadFile              = "bad_file"
	ReasonBadGlob              = "bad_glob"
	ReasonBadKey               = "bad_key"
	ReasonBadKeyFile           = "bad_key_file"
	ReasonBadMCP               = "bad_mcp"
	ReasonBadMCPServer         = "bad_mcp_server"
	ReasonBadModel             = "bad_model"
	ReasonBadRule              = "bad_rule"
	ReasonBadRules             = "bad_rules"
	ReasonBadScreen            = "bad_screen"
	ReasonBadSession           = "bad_session"
	ReasonBadSpec              = "bad_spec"
	ReasonBadTaskID            = "bad_task_id"
	ReasonBadText              = "bad_text"
	ReasonBadTime              = "bad_time"
	ReasonBridged              = "bridged"
	ReasonCancelled            = "cancelled"
	ReasonChecksFailed         = "checks_failed"
	ReasonClosed               = "closed"
	ReasonConsentUnreadable    = "consent_unreadable"
	ReasonCorrupt              = "corrupt"
	ReasonCorruptTask          = "corrupt_task"
	ReasonDetached             = "detached"
	ReasonDropped              = "dropped"
	ReasonEdgeNotFound         = "edge_not_found"
	ReasonExists               = "exists"
	ReasonExternal             = "external"
	ReasonFileMissing          = "file_missing"
	ReasonFileUnreadable       = "file_unreadable"
	ReasonFixedInput           = "fixed_input"
	ReasonForeignSupervisor    = "foreign_supervisor"
	ReasonForged               = "forged"
	ReasonHomeUnwritable       = "home_unwritable"
	ReasonHostileFile          = "hostile_file"
	ReasonIllegalTransition    = "illegal_transition"
	ReasonInProcess            = "in_process"
	ReasonInsideTmux           = "inside_tmux"
	ReasonInvalidKind          = "invalid_kind"
	ReasonInvalidName          = "invalid_name"
	ReasonInvalidPath          = "invalid_path"
	ReasonLead                 = "lead"
	ReasonLeaseNotFound        = "lease_not_found"
	ReasonLedgerNotFound       = "ledger_not_found"
	ReasonLockStolen           = "lock_stolen"
	ReasonMailboxLocked        = "mailbox_locked"
	ReasonMailboxRead          = "mailbox_read"
	ReasonMailboxUnavailable   = "mailbox_unavailable"
	ReasonMemberNotFound       = "member_not_found"
	ReasonMembersActive        = "members_active"
	ReasonMembersRunning       = "members_running"
	ReasonMemoryNotFound       = "memory_not_found"
	ReasonMergeActive          = "merge_active"
	ReasonMergeConflict        = "merge_conflict"
	ReasonMergeIncomplete      = "merge_incomplete"
	ReasonMergeNotFound        = "merge_not_found"
	ReasonMergeUnderWay        = "merge_under_way"
	ReasonMessageAmbiguous     = "message_ambiguous"
	ReasonMessageTooLarge      = "message_too_large"
	ReasonMode                 = "mode"
	ReasonNativeTeam           = "native_team"
	ReasonNetworkFilesystem    = "network_filesystem"
	ReasonNoAnswer             = "no_answer"
	ReasonNoChannel            = "no_channel"
	ReasonNoDialog             = "no_dialog"
	ReasonNoFreezer            = "no_freezer"
	ReasonNoKey                = "no_key"
	ReasonNoLog                = "no_log"
	ReasonNoNativeTeam         = "no_native_team"
	ReasonNoPorts              = "no_ports"
	ReasonNoProgram            = "no_program"
	ReasonNoProvider           = "no_provider"
	ReasonNoRepository         = "no_repository"
	ReasonNoRule               = "no_rule"
	ReasonNoScript             = "no_script"
	ReasonNoSession            = "no_session"
	ReasonNoStream             = "no_stream"
	ReasonNoTarget             = "no_target"
	ReasonNoTask               = "no_task"
	ReasonNoTerminal           = "no_terminal"
	ReasonNoVersion            = "no_version"
	ReasonNoWorktree           = "no_worktree"
	ReasonNoneStopped          = "none_stopped"
	ReasonNotALedger           = "not_a_ledger"
	ReasonNotAPerson           = "not_a_person"
	ReasonNotAvailable         = "not_available"
	ReasonNotInTmux            = "not_in_tmux"
	ReasonNotLimited           = "not_limited"
	ReasonNotLoopback          = "not_loopback"
	ReasonNotPrivate           = "not_private"
	ReasonNotRead              = "not_read"
	ReasonNotRecovered         = "not_recovered"
	ReasonNotRunning           = "not_running"
	ReasonNotUTF8              = "not_utf8"
	ReasonNotYet               = "not_yet"
	ReasonNotYours             = "not_yours"
	ReasonNothingToMerge       = "nothing_to_merge"
	ReasonOnTheRoster          = "on_the_roster"
	ReasonOperationNotFound    = "operation_not_found"
	ReasonOtherTeam            = "other_team"
	ReasonOwnMode              = "own_mode"
	ReasonOwnRole              = "own_role"
	ReasonParentOfOtherRun     = "parent_of_other_run"
	ReasonParentRequired       = "parent_required"
	ReasonPerson               = "person"
	ReasonPragma               = "pragma"
	ReasonProgramNotFound      = "program_not_found"
	ReasonQuestion             = "question"
	ReasonQueued               = "queued"
	ReasonReadinessUnknown     = "readiness_unknown"
	ReasonReadonly             = "readonly"
	ReasonRejected             = "rejected"
	ReasonRenamed              = "renamed"
	ReasonRepairFailed         = "repair_failed"
	ReasonRepositoryTwice      = "repository_twice"
	ReasonRepositoryUnknown    = "repository_unknown"
	ReasonRequestNotFound      = "request_not_found"
	ReasonRequestTaken         = "request_taken"
	ReasonRole                 = "role"
	ReasonRunning              = "running"
	ReasonSchemaNewer          = "schema_newer"
	ReasonSelfLoop             = "self_loop"
	ReasonServiceExists        = "service_exists"
	ReasonSettingNotFound      = "setting_not_found"
	ReasonShutdownRejected     = "shutdown_rejected"
	ReasonSink                 = "sink"
	ReasonSinkExists           = "sink_exists"
	ReasonSinkNotFound         = "sink_not_found"
	ReasonStartInProgress      = "start_in_progress"
	ReasonStateUnknown         = "state_unknown"
	ReasonSuperseded           = "superseded"
	ReasonSupervised           = "supervised"
	ReasonSupervisorDown       = "supervisor_down"
	ReasonSupervisorGone       = "supervisor_gone"
	ReasonSupervisorRunning    = "supervisor_running"
	ReasonTaskLocked           = "task_locked"
	ReasonTaskNotFound         = "task_not_found"
	ReasonTasksFailed          = "tasks_failed"
	ReasonTeamAmbiguous        = "team_ambiguous"
	ReasonTeamExists           = "team_exists"
	ReasonTeamNotFound         = "team_not_found"
	ReasonToken                = "token"
	ReasonTooLong              = "too_long"
	ReasonTooMany              = "too_many"
	ReasonUnknownAgent         = "unknown_agent"
	ReasonUnknownClient        = "unknown_client"
	ReasonUsage                = "usage"
	ReasonVerificationNotFound = "verification_not_found"
	ReasonWorktreeDirty        = "worktree_dirty"
)

var reasons = []Word{
	{ReasonACP, "The agent's ACP program reported an error."},
	{ReasonAgentAmbiguous, "Several agents match the name."},
	{ReasonAlreadyClaimed, "Another member owns the task."},
	{ReasonAlreadyLeading, "The session already leads a team."},
	{ReasonAlreadyRunning, "A process of the member is running."},
	{ReasonBadAgent, "The description of an agent kind is invalid."},
	{ReasonBadBudget, "The budget is invalid."},
	{ReasonBadCommand, "The command is missing or does not fit the agent kind."},
	{ReasonBadConfig, "A configuration file is invalid."},
	{ReasonBadEnv, "An environment variable cannot be passed on."},
	{ReasonBadFile, "The team file is invalid."},
	{ReasonBadGlob, "The file pattern is invalid."},
	{ReasonBadKey, "The key of a memory is invalid."},
	{ReasonBadKeyFile, "The permissions of a key file are too wide."},
	{ReasonBadMCP, "The agent kind cannot limit its MCP servers."},
	{ReasonBadMCPServer, "The description of an MCP server is invalid."},
	{ReasonBadModel, "The name of a model is invalid."},
	{ReasonBadRule, "A permission rule is invalid."},
	{ReasonBadRules, "The screen patterns of an agent kind are invalid."},
	{ReasonBadScreen, "The name of a recorded screen is invalid."},
	{ReasonBadSession, "The key of a session is invalid."},
	{ReasonBadSpec, "An agent specification is invalid."},
	{ReasonBadTaskID, "The id of a task is invalid or used twice."},
	{ReasonBadText, "The text of a memory is missing or too long."},
	{ReasonBadTime, "The duration is invalid."},
	{ReasonBridged, "Another process bridges the team."},
	{ReasonCancelled, "The caller cancelled the operation."},
	{ReasonChecksFailed, "Some checks failed."},
	{ReasonClosed, "The ledger is closed."},
	{ReasonConsentUnreadable, "The file with the person's consent cannot be read."},
	{ReasonCorrupt, "The ledger is damaged or missing."},
	{ReasonCorruptTask, "A native task file is damaged."},
	{ReasonDetached, "The worktree of a member is on no branch."},
	{ReasonDropped, "The message was dropped."},
	{ReasonEdgeNotFound, "The team has no such edge."},
	{ReasonExists, "The file exists."},
	{ReasonExternal, "The member runs outside the supervisor."},
	{ReasonFileMissing, "The file does not exist."},
	{ReasonFileUnreadable, "The file cannot be read."},
	{ReasonFixedInput, "The agent kind cannot change the input of a request."},
	{ReasonForeignSupervisor, "Another user's process listens on the supervisor's socket."},
	{ReasonForged, "A mailbox entry does not come from its named sender."},
	{ReasonHomeUnwritable, "The home directory of teamctl cannot be written."},
	{ReasonHostileFile, "A mailbox is not a private regular file."},
	{ReasonIllegalTransition, "The member cannot go from its state to that one."},
	{ReasonInProcess, "In-process members cannot spawn members."},
	{ReasonInsideTmux, "The option does not work inside tmux."},
	{ReasonInvalidKind, "The kind of message is invalid."},
	{ReasonInvalidName, "The name is invalid."},
	{ReasonInvalidPath, "The path is invalid."},
	{ReasonLead, "The lead cannot be the target of this operation."},
	{ReasonLeaseNotFound, "The member has no such lease."},
	{ReasonLedgerNotFound, "The ledger does not exist."},
	{ReasonLockStolen, "Another program broke the lock of a mailbox."},
	{ReasonMailboxLocked, "Another process keeps the mailbox locked."},
	{ReasonMailboxRead, "A member may not mark its mailbox read while its agent does so itself."},
	{ReasonMailboxUnavailable, "The mailbox cannot be locked."},
	{ReasonMemberNotFound, "The team has no such member."},
	{ReasonMembersActive, "Members are still running."},
	{ReasonMembersRunning, "Members are still running under the supervisor."},
	{ReasonMemoryNotFound, "There is no such memory."},
	{ReasonMergeActive, "A merge is in progress."},
	{ReasonMergeConflict, "The branches conflict."},
	{ReasonMergeIncomplete, "Some branches were not merged."},
	{ReasonMergeNotFound, "There is no such merge."},
	{ReasonMergeUnderWay, "The merge has begun and cannot be canceled."},
	{ReasonMessageAmbiguous, "Several messages match the id."},
	{ReasonMessageTooLarge, "The message exceeds the size of a mailbox entry."},
	{ReasonMode, "The permission mode of the caller forbids the operation."},
	{ReasonNativeTeam, "The team is one of Claude Code's own and needs the bridge."},
	{ReasonNetworkFilesystem, "The ledger is on a network file system."},
	{ReasonNoAnswer, "No answer came in time."},
	{ReasonNoChannel, "The agent kind has no channel."},
	{ReasonNoDialog, "The expected dialog is not on the screen."},
	{ReasonNoFreezer, "The backend cannot pause the member."},
	{ReasonNoKey, "The key of a model provider is missing."},
	{ReasonNoLog, "The member has no output yet."},
	{ReasonNoNativeTeam, "Claude Code has no such team."},
	{ReasonNoPorts, "Too few consecutive ports are free."},
	{ReasonNoProgram, "The program is not installed."},
	{ReasonNoProvider, "The model provider is not configured."},
	{ReasonNoRepository, "The team has no repository."},
	{ReasonNoRule, "No screen pattern has that name."},
	{ReasonNoScript, "The scripted model has no such script."},
	{ReasonNoSession, "The member has no session."},
	{ReasonNoStream, "The supervisor does not serve that stream."},
	{ReasonNoTarget, "No target branch is known."},
	{ReasonNoTask, "The member works on no task."},
	{ReasonNoTerminal, "The operation needs a terminal."},
	{ReasonNoVersion, "The version of the agent's program is unknown."},
	{ReasonNoWorktree, "The member has no worktree of its own."},
	{ReasonNoneStopped, "No member is stopped."},
	{ReasonNotALedger, "The file is not a ledger."},
	{ReasonNotAPerson, "The operation is for a person, and the caller is an agent."},
	{ReasonNotAvailable, "The operation is not available here."},
	{ReasonNotInTmux, "The member is not in tmux."},
	{ReasonNotLimited, "The agent kind has reached no usage limit."},
	{ReasonNotLoopback, "The address is not a loopback address."},
	{ReasonNotPrivate, "Other users can write the file or directory."},
	{ReasonNotRead, "The program does not read its terminal."},
	{ReasonNotRecovered, "A member could not be recovered."},
	{ReasonNotRunning, "The member is not running."},
	{ReasonNotUTF8, "The text is not UTF-8."},
	{ReasonNotYet, "Its time has not come."},
	{ReasonNotYours, "The mailbox belongs to another member."},
	{ReasonNothingToMerge, "The target contains the branch."},
	{ReasonOnTheRoster, "The member is still on the team."},
	{ReasonOperationNotFound, "There is no such operation."},
	{ReasonOtherTeam, "The caller belongs to another team."},
	{ReasonOwnMode, "A member cannot change its own permission mode."},
	{ReasonOwnRole, "A member cannot change its own role."},
	{ReasonParentOfOtherRun, "The answered message belongs to another run."},
	{ReasonParentRequired, "The message must name the one that it answers."},
	{ReasonPerson, "Only a person may answer the request."},
	{ReasonPragma, "SQLite rejected a setting that the ledger needs."},
	{ReasonProgramNotFound, "The teamctl program cannot be found."},
	{ReasonQuestion, "The request has questions that need answers."},
	{ReasonQueued, "The text is queued at the terminal and was not read yet."},
	{ReasonReadinessUnknown, "It is unknown which members have finished their work."},
	{ReasonReadonly, "The ledger cannot be written."},
	{ReasonRejected, "The member rejected the shutdown."},
	{ReasonRenamed, "The member was renamed meanwhile."},
	{ReasonRepairFailed, "Some steps of the repair failed."},
	{ReasonRepositoryTwice, "Two names stand for one repository."},
	{ReasonRepositoryUnknown, "The team has no repository of that name."},
	{ReasonRequestNotFound, "There is no such request."},
	{ReasonRequestTaken, "The id of the request is in use."},
	{ReasonRole, "The role of the caller forbids the operation."},
	{ReasonRunning, "The member is running."},
	{ReasonSchemaNewer, "A newer teamctl wrote the ledger."},
	{ReasonSelfLoop, "An edge leads from a member to itself."},
	{ReasonServiceExists, "A different service file exists."},
	{ReasonSettingNotFound, "There is no such setting."},
	{ReasonShutdownRejected, "Members rejected the shutdown."},
	{ReasonSink, "A notification could not be delivered."},
	{ReasonSinkExists, "The sink exists."},
	{ReasonSinkNotFound, "There is no such sink."},
	{ReasonStartInProgress, "Another start of the member is in progress."},
	{ReasonStateUnknown, "The state of the member's process is unknown."},
	{ReasonSuperseded, "A later request replaced this one."},
	{ReasonSupervised, "The member runs under the supervisor."},
	{ReasonSupervisorDown, "The supervisor is not running."},
	{ReasonSupervisorGone, "The supervisor has stopped."},
	{ReasonSupervisorRunning, "A supervisor of the team is running."},
	{ReasonTaskLocked, "Another program has locked the task file."},
	{ReasonTaskNotFound, "There is no such task."},
	{ReasonTasksFailed, "Some tasks failed."},
	{ReasonTeamAmbiguous, "Several teams match; the caller must name one."},
	{ReasonTeamExists, "A team has that name."},
	{ReasonTeamNotFound, "There is no such team."},
	{ReasonToken, "The token is missing or not valid for the member."},
	{ReasonTooLong, "The value exceeds its limit."},
	{ReasonTooMany, "The number exceeds its limit."},
	{ReasonUnknownAgent, "There is no such agent kind."},
	{ReasonUnknownClient, "There is no such client."},
	{ReasonUsage, "The flags or arguments do not fit together."},
	{ReasonVerificationNotFound, "There is no such verification."},
	{ReasonWorktreeDirty, "The worktree has changes that are not saved."},
}

// Reasons returns the reasons of errors that this package names, in alphabetical order.
func Reasons() []Word { return slices.Clone(reasons) }
