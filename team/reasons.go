package team

import "slices"

// Reasons of errors, for programs.
const (
	ReasonACP                  = "acp"
	ReasonAgentAmbiguous       = "agent_ambiguous"
	ReasonAgentBusy            = "agent_busy"
	ReasonAlreadyClaimed       = "already_claimed"
	ReasonAlreadyLeading       = "already_leading"
	ReasonAlreadyResolved      = "already_resolved"
	ReasonAlreadyRunning       = "already_running"
	ReasonApprovalOnly         = "approval_only"
	ReasonBacklogFull          = "backlog_full"
	ReasonBadAgent             = "bad_agent"
	ReasonCommentDraft         = "comment_draft"
	ReasonCommentNotFound      = "comment_not_found"
	ReasonCommentSent          = "comment_sent"
	ReasonDraftsChanged        = "drafts_changed"
	ReasonBadBranch            = "invalid_branch"
	ReasonBadBudget            = "bad_budget"
	ReasonBadCommand           = "bad_command"
	ReasonBadConfig            = "bad_config"
	ReasonBadEnv               = "bad_env"
	ReasonBadFile              = "bad_file"
	ReasonBadGlob              = "bad_glob"
	ReasonBadInput             = "invalid_input"
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
	ReasonBadStatus            = "bad_status"
	ReasonBadTaskID            = "bad_task_id"
	ReasonBadText              = "bad_text"
	ReasonBadTime              = "bad_time"
	ReasonBadToken             = "bad_token"
	ReasonBlocked              = "blocked"
	ReasonBranchExists         = "branch_exists"
	ReasonBridged              = "bridged"
	ReasonBudgetUsedUp         = "budget_used_up"
	ReasonBusy                 = "busy"
	ReasonBypass               = "bypass"
	ReasonCanceled             = "canceled"
	ReasonCancelled            = "cancelled"
	ReasonCheckedOut           = "branch_checked_out"
	ReasonChecksFailed         = "checks_failed"
	ReasonClosed               = "closed"
	ReasonCommandFailed        = "command_failed"
	ReasonConsent              = "consent_needed"
	ReasonConsentUnreadable    = "consent_unreadable"
	ReasonCorrupt              = "corrupt"
	ReasonCorruptConfig        = "corrupt_config"
	ReasonCorruptMailbox       = "corrupt_mailbox"
	ReasonCorruptTask          = "corrupt_task"
	ReasonCycle                = "dependency_cycle"
	ReasonDelegation           = "delegation_forbidden"
	ReasonDetached             = "detached"
	ReasonDiskFull             = "disk_full"
	ReasonDropped              = "dropped"
	ReasonEdgeNotFound         = "edge_not_found"
	ReasonExists               = "exists"
	ReasonExpired              = "expired"
	ReasonExternal             = "external"
	ReasonFileMissing          = "file_missing"
	ReasonFileUnreadable       = "file_unreadable"
	ReasonFixedInput           = "fixed_input"
	ReasonForeignSupervisor    = "foreign_supervisor"
	ReasonForged               = "forged"
	ReasonGitFailed            = "git_failed"
	ReasonGitMissing           = "git_missing"
	ReasonGitTooOld            = "git_too_old"
	ReasonHomeUnwritable       = "home_unwritable"
	ReasonHookBlocked          = "hook_blocked"
	ReasonHopLimit             = "hop_limit"
	ReasonHostileFile          = "hostile_file"
	ReasonNoDrafts             = "no_drafts"
	ReasonHung                 = "supervisor_hung"
	ReasonIDTaken              = "id_taken"
	ReasonIllegalTransition    = "illegal_transition"
	ReasonInProcess            = "in_process"
	ReasonInReview             = "in_review"
	ReasonInput                = "input"
	ReasonInsideTmux           = "inside_tmux"
	ReasonInvalidKind          = "invalid_kind"
	ReasonInvalidName          = "invalid_name"
	ReasonInvalidPath          = "invalid_path"
	ReasonLead                 = "lead"
	ReasonLeaseNotFound        = "lease_not_found"
	ReasonLedgerNotFound       = "ledger_not_found"
	ReasonLedgerReplaced       = "ledger_replaced"
	ReasonLockFile             = "lock_file"
	ReasonLockStolen           = "lock_stolen"
	ReasonMailboxLocked        = "mailbox_locked"
	ReasonMailboxRead          = "mailbox_read"
	ReasonMailboxUnavailable   = "mailbox_unavailable"
	ReasonMainWorktree         = "main_worktree"
	ReasonMemberNotFound       = "member_not_found"
	ReasonMemberRemoved        = "member_removed"
	ReasonMemberRunning        = "member_running"
	ReasonMembersActive        = "members_active"
	ReasonMembersEnded         = "members_ended"
	ReasonMembersRunning       = "members_running"
	ReasonMemoryNotFound       = "memory_not_found"
	ReasonMergeActive          = "merge_active"
	ReasonMergeConflict        = "merge_conflict"
	ReasonMergeIncomplete      = "merge_incomplete"
	ReasonMergeNotFound        = "merge_not_found"
	ReasonMergeRefused         = "merge_refused"
	ReasonMergeUnderWay        = "merge_under_way"
	ReasonMessageAmbiguous     = "message_ambiguous"
	ReasonMessageNotFound      = "message_not_found"
	ReasonMessageTooLarge      = "message_too_large"
	ReasonMessagesCap          = "team_messages_cap_exceeded"
	ReasonMode                 = "mode"
	ReasonNameTaken            = "name_taken"
	ReasonNativeTeam           = "native_team"
	ReasonNetworkFilesystem    = "network_filesystem"
	ReasonNoAnswer             = "no_answer"
	ReasonNoApproval           = "approval_not_found"
	ReasonNoChannel            = "no_channel"
	ReasonNoDialog             = "no_dialog"
	ReasonNoEnviron            = "no_environment"
	ReasonNoFreezer            = "no_freezer"
	ReasonNoKey                = "no_key"
	ReasonConfine              = "confine"
	ReasonNoLog                = "no_log"
	ReasonNoMemberRunning      = "no_member_running"
	ReasonNoNativeTeam         = "no_native_team"
	ReasonNoPorts              = "no_ports"
	ReasonNoProgram            = "no_program"
	ReasonNoProvider           = "no_provider"
	ReasonNoRepository         = "no_repository"
	ReasonNoRule               = "no_rule"
	ReasonNoScript             = "no_script"
	ReasonNoSession            = "no_session"
	ReasonNoStream             = "no_stream"
	ReasonNoTaker              = "no_taker"
	ReasonNoTarget             = "no_target"
	ReasonNoTask               = "no_task"
	ReasonNoTerminal           = "no_terminal"
	ReasonNoToken              = "no_token"
	ReasonNoVersion            = "no_version"
	ReasonNoWorktree           = "no_worktree"
	ReasonNoneStopped          = "none_stopped"
	ReasonNotALedger           = "not_a_ledger"
	ReasonNotAMember           = "not_a_member"
	ReasonNotAPerson           = "not_a_person"
	ReasonNotAvailable         = "not_available"
	ReasonNotDelivered         = "not_delivered"
	ReasonNotExecutable        = "not_executable"
	ReasonNotInTmux            = "not_in_tmux"
	ReasonNotLimited           = "not_limited"
	ReasonNotLoopback          = "not_loopback"
	ReasonNotOwner             = "not_owner"
	ReasonNotPrivate           = "not_private"
	ReasonNotRead              = "not_read"
	ReasonNotRecovered         = "not_recovered"
	ReasonNotRepository        = "not_a_repository"
	ReasonNotRunning           = "not_running"
	ReasonNotUTF8              = "not_utf8"
	ReasonNotWorktree          = "not_a_worktree"
	ReasonNotYet               = "not_yet"
	ReasonNotYours             = "not_yours"
	ReasonNothingToMerge       = "nothing_to_merge"
	ReasonOnTheRoster          = "on_the_roster"
	ReasonOpenCalls            = "open_calls"
	ReasonOperationInProgress  = "operation_in_progress"
	ReasonOperationNotFound    = "operation_not_found"
	ReasonOtherTeam            = "other_team"
	ReasonOwnMode              = "own_mode"
	ReasonOwnRequest           = "own_request"
	ReasonOwnRole              = "own_role"
	ReasonParentOfOtherRun     = "parent_of_other_run"
	ReasonParentRequired       = "parent_required"
	ReasonPathExists           = "path_exists"
	ReasonPathMissing          = "path_missing"
	ReasonPerson               = "person"
	ReasonPlanPending          = "plan_pending"
	ReasonPragma               = "pragma"
	ReasonProgramNotFound      = "program_not_found"
	ReasonProviderLimited      = "provider_limited"
	ReasonQuestion             = "question"
	ReasonQueued               = "queued"
	ReasonReadOnly             = "repository_readonly"
	ReasonReadinessUnknown     = "readiness_unknown"
	ReasonReadonly             = "readonly"
	ReasonRefConflict          = "ref_conflict"
	ReasonRejected             = "rejected"
	ReasonRenamed              = "renamed"
	ReasonRepairFailed         = "repair_failed"
	ReasonRepositoryTwice      = "repository_twice"
	ReasonRepositoryUnknown    = "repository_unknown"
	ReasonRequestNotFound      = "request_not_found"
	ReasonRequestTaken         = "request_taken"
	ReasonReservedName         = "reserved_name"
	ReasonReservedSender       = "reserved_sender"
	ReasonRole                 = "role"
	ReasonRunClosed            = "run_closed"
	ReasonRunDepth             = "run_depth"
	ReasonRunNotFound          = "run_not_found"
	ReasonRunning              = "running"
	ReasonSchemaNewer          = "schema_newer"
	ReasonScratchpad           = "scratchpad_version_conflict"
	ReasonSelfLoop             = "self_loop"
	ReasonSelfSend             = "self_send"
	ReasonServiceExists        = "service_exists"
	ReasonSessionClosed        = "session_closed"
	ReasonSessionNotFound      = "session_not_found"
	ReasonSettingChanged       = "setting_changed"
	ReasonSettingNotFound      = "setting_not_found"
	ReasonSetup                = "setup_failed"
	ReasonShutdownRejected     = "shutdown_rejected"
	ReasonSink                 = "sink"
	ReasonSinkExists           = "sink_exists"
	ReasonSinkNotFound         = "sink_not_found"
	ReasonSpecInUse            = "agent_in_use"
	ReasonSpecNotFound         = "agent_not_found"
	ReasonSpecTaken            = "agent_name_taken"
	ReasonStaleAttempt         = "stale_attempt"
	ReasonStaleGeneration      = "stale_generation"
	ReasonStaleTurn            = "stale_turn"
	ReasonStartInProgress      = "start_in_progress"
	ReasonStateUnknown         = "state_unknown"
	ReasonSuperseded           = "superseded"
	ReasonSupervised           = "supervised"
	ReasonSupervisorDown       = "supervisor_down"
	ReasonSupervisorGone       = "supervisor_gone"
	ReasonSupervisorRunning    = "supervisor_running"
	ReasonTargetCheckedOut     = "target_checked_out"
	ReasonTargetDirty          = "target_dirty"
	ReasonTargetMoves          = "target_moves"
	ReasonTargetRed            = "target_red"
	ReasonTaskLocked           = "task_locked"
	ReasonTaskNotFound         = "task_not_found"
	ReasonTasksFailed          = "tasks_failed"
	ReasonTeamAmbiguous        = "team_ambiguous"
	ReasonTeamCopied           = "team_copied"
	ReasonTeamExists           = "team_exists"
	ReasonTeamMoved            = "team_moved"
	ReasonTeamNotFound         = "team_not_found"
	ReasonTimeout              = "timeout"
	ReasonToken                = "token"
	ReasonTooDeep              = "session_depth"
	ReasonTooLong              = "too_long"
	ReasonTooMany              = "too_many"
	ReasonTooManyChildren      = "too_many_children"
	ReasonTooManyWakes         = "too_many_wakes"
	ReasonTurnNotFound         = "turn_not_found"
	ReasonUnbornHead           = "unborn_head"
	ReasonUnknownAgent         = "unknown_agent"
	ReasonUnknownBranch        = "unknown_branch"
	ReasonUnknownClient        = "unknown_client"
	ReasonUnknownRev           = "unknown_revision"
	ReasonUnmerged             = "unmerged_files"
	ReasonUnreadableRepo       = "repository_unreadable"
	ReasonUnsettled            = "mailbox_unsettled"
	ReasonUsage                = "usage"
	ReasonVerificationNotFound = "verification_not_found"
	ReasonVerifying            = "verifying"
	ReasonVersionLate          = "version_late"
	ReasonWorktreeBusy         = "worktree_busy"
	ReasonWorktreeDirty        = "worktree_dirty"
	ReasonWorktreeExists       = "worktree_exists"
	ReasonWorktreeLocked       = "worktree_locked"
	ReasonWorktreeNested       = "worktree_nested"
	ReasonWorktreeUnknown      = "worktree_unknown"
)

var reasons = []Word{
	{ReasonACP, "The agent's ACP program reported an error."},
	{ReasonAgentAmbiguous, "Several agents match the name."},
	{ReasonAgentBusy, "The agent works on another task."},
	{ReasonAlreadyClaimed, "Another member owns the task."},
	{ReasonAlreadyLeading, "The session already leads a team."},
	{ReasonAlreadyResolved, "The request was answered already, in another way."},
	{ReasonAlreadyRunning, "A process of the member is running."},
	{ReasonApprovalOnly, "The request is answered by an approval or a rejection only."},
	{ReasonBacklogFull, "Too much waits for the session."},
	{ReasonBadAgent, "The description of an agent kind is invalid."},
	{ReasonCommentDraft, "The comment was not sent yet."},
	{ReasonCommentNotFound, "There is no such comment."},
	{ReasonCommentSent, "The comment was sent and cannot be changed."},
	{ReasonDraftsChanged, "The comments, or the lines that they are about, were changed since they were read."},
	{ReasonBadBranch, "The name of the branch is invalid."},
	{ReasonBadBudget, "The budget is invalid."},
	{ReasonBadCommand, "The command is missing or does not fit the agent kind."},
	{ReasonBadConfig, "A configuration file is invalid."},
	{ReasonBadEnv, "An environment variable cannot be passed on."},
	{ReasonBadFile, "The team file is invalid."},
	{ReasonBadGlob, "The file pattern is invalid."},
	{ReasonBadInput, "What git was to be given is invalid."},
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
	{ReasonBadStatus, "The status of the task does not permit it."},
	{ReasonBadTaskID, "The id of a task is invalid or used twice."},
	{ReasonBadText, "The text of a memory is missing or too long."},
	{ReasonBadTime, "The duration is invalid."},
	{ReasonBadToken, "The token of an MCP server is too short."},
	{ReasonBlocked, "The task depends on tasks that are not completed."},
	{ReasonBranchExists, "The branch exists."},
	{ReasonBridged, "Another process bridges the team."},
	{ReasonBudgetUsedUp, "The budget is used up."},
	{ReasonBusy, "The ledger is locked by another process."},
	{ReasonBypass, "The mode has to be asked for when the member is spawned."},
	{ReasonCanceled, "It was canceled."},
	{ReasonCancelled, "The caller cancelled the operation."},
	{ReasonCheckedOut, "The branch is checked out in another worktree."},
	{ReasonChecksFailed, "Some checks failed."},
	{ReasonClosed, "The ledger is closed."},
	{ReasonCommandFailed, "The command could not be run."},
	{ReasonConsent, "Nobody has agreed to the commands."},
	{ReasonConsentUnreadable, "The file with the person's consent cannot be read."},
	{ReasonCorrupt, "The ledger is damaged or missing."},
	{ReasonCorruptConfig, "The file config.json of the team cannot be understood."},
	{ReasonCorruptMailbox, "The mailbox file is damaged."},
	{ReasonCorruptTask, "A native task file is damaged."},
	{ReasonCycle, "The dependency would close a circle."},
	{ReasonDelegation, "The delegation is not permitted."},
	{ReasonDetached, "The worktree of a member is on no branch."},
	{ReasonDiskFull, "The disk is full."},
	{ReasonDropped, "The message was dropped."},
	{ReasonEdgeNotFound, "The team has no such edge."},
	{ReasonExists, "The file exists."},
	{ReasonExpired, "The request has expired."},
	{ReasonExternal, "The member runs outside the supervisor."},
	{ReasonFileMissing, "The file does not exist."},
	{ReasonFileUnreadable, "The file cannot be read."},
	{ReasonFixedInput, "The agent kind cannot change the input of a request."},
	{ReasonForeignSupervisor, "Another user's process listens on the supervisor's socket."},
	{ReasonForged, "A mailbox entry does not come from its named sender."},
	{ReasonGitFailed, "Git failed; the message has its words."},
	{ReasonGitMissing, "There is no git program."},
	{ReasonGitTooOld, "The git program is too old."},
	{ReasonHomeUnwritable, "The home directory of teamctl cannot be written."},
	{ReasonHookBlocked, "A hook has refused the operation."},
	{ReasonHopLimit, "The request has been handed on too often."},
	{ReasonHostileFile, "A mailbox is not a private regular file."},
	{ReasonNoDrafts, "There are no comments to send."},
	{ReasonHung, "The supervisor does not answer."},
	{ReasonIDTaken, "The id is taken."},
	{ReasonIllegalTransition, "The member cannot go from its state to that one."},
	{ReasonInProcess, "In-process members cannot spawn members."},
	{ReasonInReview, "The task waits for its review."},
	{ReasonInput, "The input does not fit the schema of the operation."},
	{ReasonInsideTmux, "The option does not work inside tmux."},
	{ReasonInvalidKind, "The kind of message is invalid."},
	{ReasonInvalidName, "The name is invalid."},
	{ReasonInvalidPath, "The path is invalid."},
	{ReasonLead, "The lead cannot be the target of this operation."},
	{ReasonLeaseNotFound, "The member has no such lease."},
	{ReasonLedgerNotFound, "The ledger does not exist."},
	{ReasonLedgerReplaced, "Another file now has the name of the open ledger."},
	{ReasonLockFile, "A lock file of git is there."},
	{ReasonLockStolen, "Another program broke the lock of a mailbox."},
	{ReasonMailboxLocked, "Another process keeps the mailbox locked."},
	{ReasonMailboxRead, "A member may not mark its mailbox read while its agent does so itself."},
	{ReasonMailboxUnavailable, "The mailbox cannot be locked."},
	{ReasonMainWorktree, "It is the person's own checkout."},
	{ReasonMemberNotFound, "The team has no such member."},
	{ReasonMemberRemoved, "The member has left the team."},
	{ReasonMemberRunning, "The member is running."},
	{ReasonMembersActive, "Members are still running."},
	{ReasonMembersEnded, "The deletion was given up after its members had been asked to end."},
	{ReasonMembersRunning, "Members are still running under the supervisor."},
	{ReasonMemoryNotFound, "There is no such memory."},
	{ReasonMergeActive, "A merge is in progress."},
	{ReasonMergeConflict, "The branches conflict."},
	{ReasonMergeIncomplete, "Some branches were not merged."},
	{ReasonMergeNotFound, "There is no such merge."},
	{ReasonMergeRefused, "Git did not start the merge."},
	{ReasonMergeUnderWay, "The merge has begun and cannot be canceled."},
	{ReasonMessageAmbiguous, "Several messages match the id."},
	{ReasonMessageNotFound, "There is no such message."},
	{ReasonMessageTooLarge, "The message exceeds the size of a mailbox entry."},
	{ReasonMessagesCap, "The run has had all messages that it may have."},
	{ReasonMode, "The permission mode of the caller forbids the operation."},
	{ReasonNameTaken, "The name is taken."},
	{ReasonNativeTeam, "The team is one of Claude Code's own and needs the bridge."},
	{ReasonNetworkFilesystem, "The ledger is on a network file system."},
	{ReasonNoAnswer, "No answer came in time."},
	{ReasonNoApproval, "There is no such request."},
	{ReasonNoChannel, "The agent kind has no channel."},
	{ReasonNoDialog, "The expected dialog is not on the screen."},
	{ReasonNoEnviron, "The person's environment was not recorded."},
	{ReasonNoFreezer, "The backend cannot pause the member."},
	{ReasonConfine, "The member cannot be confined as asked."},
	{ReasonNoKey, "The key of a model provider is missing."},
	{ReasonNoLog, "The member has no output yet."},
	{ReasonNoMemberRunning, "No member that takes tasks is running."},
	{ReasonNoNativeTeam, "Claude Code has no such team."},
	{ReasonNoPorts, "Too few consecutive ports are free."},
	{ReasonNoProgram, "The program is not installed."},
	{ReasonNoProvider, "The model provider is not configured."},
	{ReasonNoRepository, "The team has no repository."},
	{ReasonNoRule, "No screen pattern has that name."},
	{ReasonNoScript, "The scripted model has no such script."},
	{ReasonNoSession, "The member has no session."},
	{ReasonNoStream, "The supervisor does not serve that stream."},
	{ReasonNoTaker, "No running member takes these tasks."},
	{ReasonNoTarget, "No target branch is known."},
	{ReasonNoTask, "The member works on no task."},
	{ReasonNoTerminal, "The operation needs a terminal."},
	{ReasonNoToken, "The caller names a member and has no token."},
	{ReasonNoVersion, "The version of the agent's program is unknown."},
	{ReasonNoWorktree, "The member has no worktree of its own."},
	{ReasonNoneStopped, "No member is stopped."},
	{ReasonNotALedger, "The file is not a ledger."},
	{ReasonNotAMember, "The name is not a member of the team."},
	{ReasonNotAPerson, "The operation is for a person, and the caller is an agent."},
	{ReasonNotAvailable, "The operation is not available here."},
	{ReasonNotDelivered, "Nothing of the conversation is delivered outside the team."},
	{ReasonNotExecutable, "The agent's program cannot be executed."},
	{ReasonNotInTmux, "The member is not in tmux."},
	{ReasonNotLimited, "The agent kind has reached no usage limit."},
	{ReasonNotLoopback, "The address is not a loopback address."},
	{ReasonNotOwner, "The task is another member's."},
	{ReasonNotPrivate, "Other users can write the file or directory."},
	{ReasonNotRead, "The program does not read its terminal."},
	{ReasonNotRecovered, "A member could not be recovered."},
	{ReasonNotRepository, "The directory is in no git repository."},
	{ReasonNotRunning, "The member is not running."},
	{ReasonNotUTF8, "The text is not UTF-8."},
	{ReasonNotWorktree, "The directory is not a worktree of the repository."},
	{ReasonNotYet, "Its time has not come."},
	{ReasonNotYours, "The mailbox belongs to another member."},
	{ReasonNothingToMerge, "The target contains the branch."},
	{ReasonOnTheRoster, "The member is still on the team."},
	{ReasonOpenCalls, "Tools that the turn has called have not ended."},
	{ReasonOperationInProgress, "A merge, a rebase or the like is in progress."},
	{ReasonOperationNotFound, "There is no such operation."},
	{ReasonOtherTeam, "The caller belongs to another team."},
	{ReasonOwnMode, "A member cannot change its own permission mode."},
	{ReasonOwnRequest, "Nobody answers a request of their own."},
	{ReasonOwnRole, "A member cannot change its own role."},
	{ReasonParentOfOtherRun, "The answered message belongs to another run."},
	{ReasonParentRequired, "The message must name the one that it answers."},
	{ReasonPathExists, "The path exists."},
	{ReasonPathMissing, "The path does not exist."},
	{ReasonPerson, "Only a person may answer the request."},
	{ReasonPlanPending, "The member's plan waits for an answer."},
	{ReasonPragma, "SQLite rejected a setting that the ledger needs."},
	{ReasonProgramNotFound, "The teamctl program cannot be found."},
	{ReasonProviderLimited, "The provider's usage limit is reached."},
	{ReasonQuestion, "The request has questions that need answers."},
	{ReasonQueued, "The text is queued at the terminal and was not read yet."},
	{ReasonReadOnly, "The repository cannot be written to."},
	{ReasonReadinessUnknown, "It is unknown which members have finished their work."},
	{ReasonReadonly, "The ledger cannot be written."},
	{ReasonRefConflict, "A branch would be a directory of another one."},
	{ReasonRejected, "The member rejected the shutdown."},
	{ReasonRenamed, "The member was renamed meanwhile."},
	{ReasonRepairFailed, "Some steps of the repair failed."},
	{ReasonRepositoryTwice, "Two names stand for one repository."},
	{ReasonRepositoryUnknown, "The team has no repository of that name."},
	{ReasonRequestNotFound, "There is no such request."},
	{ReasonRequestTaken, "The id of the request is in use."},
	{ReasonReservedName, "The name means something else, and no member can have it."},
	{ReasonReservedSender, "The name of the sender is reserved."},
	{ReasonRole, "The role of the caller forbids the operation."},
	{ReasonRunClosed, "The run has ended."},
	{ReasonRunDepth, "Runs are nested too deep."},
	{ReasonRunNotFound, "There is no such run."},
	{ReasonRunning, "The member is running."},
	{ReasonSchemaNewer, "A newer teamctl wrote the ledger."},
	{ReasonScratchpad, "Somebody else has changed the scratchpad meanwhile."},
	{ReasonSelfLoop, "An edge leads from a member to itself."},
	{ReasonSelfSend, "The message is for its sender."},
	{ReasonServiceExists, "A different service file exists."},
	{ReasonSessionClosed, "The session is closed."},
	{ReasonSessionNotFound, "There is no such session."},
	{ReasonSettingChanged, "Somebody else has changed the setting meanwhile."},
	{ReasonSettingNotFound, "There is no such setting."},
	{ReasonSetup, "A command that sets the worktree up failed; the message names its log."},
	{ReasonShutdownRejected, "Members rejected the shutdown."},
	{ReasonSink, "A notification could not be delivered."},
	{ReasonSinkExists, "The sink exists."},
	{ReasonSinkNotFound, "There is no such sink."},
	{ReasonSpecInUse, "A session uses the agent specification."},
	{ReasonSpecNotFound, "There is no such agent specification."},
	{ReasonSpecTaken, "The name of the agent specification is taken."},
	{ReasonStaleAttempt, "The attempt at the task is over."},
	{ReasonStaleGeneration, "A later process of the member has taken over."},
	{ReasonStaleTurn, "Another attempt has taken over the turn."},
	{ReasonStartInProgress, "Another start of the member is in progress."},
	{ReasonStateUnknown, "The state of the member's process is unknown."},
	{ReasonSuperseded, "A later request replaced this one."},
	{ReasonSupervised, "The member runs under the supervisor."},
	{ReasonSupervisorDown, "The supervisor is not running."},
	{ReasonSupervisorGone, "The supervisor has stopped."},
	{ReasonSupervisorRunning, "A supervisor of the team is running."},
	{ReasonTargetCheckedOut, "The target of the merge is checked out somewhere."},
	{ReasonTargetDirty, "The target of the merge is checked out somewhere, with changes."},
	{ReasonTargetMoves, "Other processes keep moving the target of the merge."},
	{ReasonTargetRed, "The gates fail on the target of the merge itself."},
	{ReasonTaskLocked, "Another program has locked the task file."},
	{ReasonTaskNotFound, "There is no such task."},
	{ReasonTasksFailed, "Some tasks failed."},
	{ReasonTeamAmbiguous, "Several teams match; the caller must name one."},
	{ReasonTeamCopied, "The team is a copy, and the original is where the ledger says."},
	{ReasonTeamExists, "A team has that name."},
	{ReasonTeamMoved, "The team was moved, and its ledger names the former place."},
	{ReasonTeamNotFound, "There is no such team."},
	{ReasonTimeout, "It took too long."},
	{ReasonToken, "The token is of another member, or of an earlier start of this one."},
	{ReasonTooDeep, "Sessions are nested too deep."},
	{ReasonTooLong, "The value exceeds its limit."},
	{ReasonTooMany, "The number exceeds its limit."},
	{ReasonTooManyChildren, "The session has too many children."},
	{ReasonTooManyWakes, "The session waits for too many times already."},
	{ReasonTurnNotFound, "There is no such turn."},
	{ReasonUnbornHead, "The repository has no commit yet."},
	{ReasonUnknownAgent, "There is no such agent kind."},
	{ReasonUnknownBranch, "There is no such branch."},
	{ReasonUnknownClient, "There is no such client."},
	{ReasonUnknownRev, "There is no such revision."},
	{ReasonUnmerged, "Files have conflicts that are not resolved."},
	{ReasonUnreadableRepo, "There is a repository that git cannot read."},
	{ReasonUnsettled, "The mailbox changes under another program's hands."},
	{ReasonUsage, "The flags or arguments do not fit together."},
	{ReasonVerificationNotFound, "There is no such verification."},
	{ReasonVerifying, "The task is being verified."},
	{ReasonVersionLate, "The program has not told its version yet."},
	{ReasonWorktreeBusy, "Another process changes the worktree."},
	{ReasonWorktreeDirty, "The worktree has changes that are not saved."},
	{ReasonWorktreeExists, "A worktree has that path."},
	{ReasonWorktreeLocked, "The worktree is locked."},
	{ReasonWorktreeNested, "A repository inside the worktree has work of its own."},
	{ReasonWorktreeUnknown, "The worktree could not be inspected."},
}

// Reasons returns the reasons of errors, in alphabetical order.
func Reasons() []Word { return slices.Clone(reasons) }
