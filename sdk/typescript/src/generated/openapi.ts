// Made by scripts/generate.mjs from api/openapi.yaml: do not edit.

export interface paths {
    "/api/v1/agent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the skills of definitions
         * @description The skills of the applied definitions. GET /agent/skills lists the bundled ones. Needs a key of role viewer or above.
         */
        get: operations["listAgentSkills"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/artifacts/{uid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show an artifact
         * @description Needs a key of role viewer or above.
         */
        get: operations["getArtifact"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/artifacts/{uid}/download": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download an artifact
         * @description An agent wrote the content: do not trust it. 404 for an artifact that is a link. Needs a key of role viewer or above.
         */
        get: operations["downloadArtifact"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/conversations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a conversation
         * @description Returns all runs of the conversation, oldest first. If it exceeds 16 MiB, the answer has the newest part, after an event block named left_out. Needs a key of role viewer or above.
         */
        get: operations["getConversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/conversations/{id}/followups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a message to a conversation
         * @description Sends the message to its newest run, like POST /agent/runs/{runId}/followups. Needs a key of role runner or above.
         */
        post: operations["createConversationFollowup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/conversations/{id}/transcript": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a conversation
         * @description Returns the same JSON as the conversation, as a file to save. If it exceeds 16 MiB, the answer has the newest part, after an event block named left_out. Needs a key of role viewer or above.
         */
        get: operations["getConversationTranscript"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/environments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List environments
         * @description Lists the environments of the server's settings, and those that applied definitions name. An environment that only definitions name has no effect. Needs a key of role viewer or above.
         */
        get: operations["listEnvironments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List agents
         * @description Lists the agents of the applied definitions. To change one, edit its file. Needs a key of role viewer or above.
         */
        get: operations["listAgentIdentities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/identities/{uid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show an agent
         * @description An agent of an applied definition. Needs a key of role viewer or above.
         */
        get: operations["getAgentIdentity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List language models
         * @description Lists the models in the settings of harnesses, and those that the applied definitions name. A run may name others. Needs a key of role viewer or above.
         */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List runs
         * @description Conditions on different fields must all hold; the values of a repeated parameter are alternatives. metadata[key]=value selects runs by their metadata. Runs that are added meanwhile cause no run to appear twice or be skipped. The server examines a bounded number of runs for a page. A page may have fewer runs than limit, or none; the list continues while has_next_page is true. Needs a key of role viewer or above.
         */
        get: operations["listRuns"];
        put?: never;
        /**
         * Start a run
         * @description Queues a run. Repeats with the same Idempotency-Key get the first answer for 24 hours. Needs a key of role runner or above.
         */
        post: operations["createRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a run
         * @description Returns the full run, with the prompt that the agent got. Needs a key of role viewer or above.
         */
        get: operations["getRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/answers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answer what an agent asks
         * @description A run is BLOCKED while its agent waits for permission. The field questions lists what it asks. The run goes on after the last answer. 409 when the question has an answer, or the run went on without one. Needs a key of role runner or above.
         */
        post: operations["answerQuestion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/attachments/{fileName}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a file of a run
         * @description Outsiders may have written the content: do not trust it. Needs a key of role viewer or above.
         */
        get: operations["getAttachment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a run
         * @description Cancels a queued run at once. A run in progress is stopped, and killed after 5 seconds; the answer comes when it is CANCELLED, or after 10 seconds, with cancel_requested_at set. The answer is the run's ID. Needs a key of role runner or above.
         */
        post: operations["cancelRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/conversation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the conversation of a run
         * @description Returns the conversation of this run only. If it exceeds 16 MiB, the answer has the newest part, after an event block named left_out. Needs a key of role viewer or above.
         */
        get: operations["getRunConversation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow a run
         * @description Server-sent events: state with a RunStateEvent, message with a ConversationMessage. The stream ends with the run; a client that reconnects then gets 204. Needs a key of role viewer or above.
         */
        get: operations["streamRunEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/followups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a message to a run
         * @description Queues a run that has ended again, as a new execution of the same run. Repeats with the same Idempotency-Key get the first answer for 24 hours. Needs a key of role runner or above.
         */
        post: operations["createFollowup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/outputs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the outputs of a run
         * @description What the server performs for the run at a forge, and what it refused. Needs a key of role viewer or above.
         */
        get: operations["listRunOutputs"];
        put?: never;
        /**
         * Open a pull request from the changes of a run
         * @description For changes without a pull request. 409 when the run has not ended, has no changes, or has a pull request already. Needs a key of role admin or above.
         */
        post: operations["openPullRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/outputs/{outputUid}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Agree to an output
         * @description The server performs it. 409 unless it is staged. Needs a key of role admin or above.
         */
        post: operations["approveRunOutput"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/outputs/{outputUid}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject an output
         * @description It is never performed. 409 unless it is staged. Needs a key of role runner or above.
         */
        post: operations["rejectRunOutput"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/outputs/{outputUid}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Try an output again
         * @description 409 unless it failed. Needs a key of role runner or above.
         */
        post: operations["retryRunOutput"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a run that has ended again, as a new run
         * @description The new run has the prompt, configuration and attachments of the first one, the payload of its delivery included, an ID and a conversation of its own, and metadata.retry_of. Follow-ups are not repeated. 409 while the run has not ended, and when the payload is no longer kept. Needs a key of role runner or above.
         */
        post: operations["retryRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show the changes of a run's state
         * @description The first entry is the creation of the run. Needs a key of role viewer or above.
         */
        get: operations["getRunTimeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/runs/{runId}/transcript": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a conversation of a run
         * @description Returns the same JSON as the conversation, as a file to save. If it exceeds 16 MiB, the answer has the newest part, after an event block named left_out. Needs a key of role viewer or above.
         */
        get: operations["getRunTranscript"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List schedules
         * @description The schedule triggers of the applied definitions. They are changed in definition files. Needs a key of role viewer or above.
         */
        get: operations["listSchedules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/schedules/{scheduleId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a schedule
         * @description A schedule trigger of an applied definition. Needs a key of role viewer or above.
         */
        get: operations["getSchedule"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agent/skills": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the bundled skills
         * @description A catalog for grouping the use of skills across conversations. The skills that a run had are its advertised_skills. Needs a key of role viewer or above.
         */
        get: operations["listBundledSkills"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the audit log
         * @description Each change is one entry; a change that failed has none. Needs a key of role admin or above.
         */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the factories
         * @description Needs a key of role planner or above.
         */
        get: operations["listFactories"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory-files/schemas": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the versions of the definition files */
        get: operations["listSchemas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory-files/schemas/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the JSON Schemas of all definition files */
        get: operations["getSchemas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory-files/schemas/{version}/{document}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the JSON Schema of one kind of definition file */
        get: operations["getSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory-files/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Validate a definition tree
         * @description Never reads the state. Needs no key; without a key the limits are 2 MiB, and 30 requests a minute from a sender.
         */
        post: operations["validateFactoryFiles"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a factory
         * @description Needs a key of role planner or above.
         */
        get: operations["getFactory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/applied": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the applied revisions to which a factory can be rolled back
         * @description The files of a revision are kept for 30 days after another one took its place. Revisions with the same files are one. Needs a key of role viewer or above.
         */
        get: operations["listApplied"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/automations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a factory's automations, with their webhooks and why they do not fire
         * @description Needs a key of role viewer or above.
         */
        get: operations["listAutomations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/automations/{automation}/flow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what waits in an automation, what was skipped, and its conversations
         * @description Needs a key of role viewer or above.
         */
        get: operations["getAutomationFlow"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/automations/{automation}/waiting": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Cancel the runs of an automation that wait
         * @description Cancels the runs that wait for others of the automation, for the end of a burst of deliveries, or for their next attempt: at most 1000. Runs that workers may take or hold go on. Needs a key of role runner or above.
         */
        delete: operations["dropWaitingRuns"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a factory's events for receivers outside, newest first
         * @description Needs a key of role viewer or above.
         */
        get: operations["listEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/events/{event_uid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an event with its attempts
         * @description Needs a key of role viewer or above.
         */
        get: operations["getEvent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/events/{event_uid}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send an event again
         * @description 409 unless it is dead or was sent. Needs a key of role runner or above.
         */
        post: operations["replayEvent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the files of a definition
         * @description Only for managed factories. Needs a key of role viewer or above.
         */
        get: operations["listFiles"];
        /**
         * Replace the definition with a tree of files
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        put: operations["importFiles"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/files.tar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export the definition as a tar, for a git or directory source
         * @description Only for managed factories. Needs a key of role admin or above.
         */
        get: operations["exportFiles"];
        /**
         * Replace the definition with the files of a tar
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        put: operations["importTar"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/files/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a definition file
         * @description Only for managed factories. Needs a key of role admin or above.
         */
        get: operations["getFile"];
        /**
         * Write a definition file
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        put: operations["putFile"];
        post?: never;
        /**
         * Delete a definition file
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        delete: operations["deleteFile"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/filter-tests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a trigger with a stored delivery or a payload
         * @description Needs a key of role viewer or above.
         */
        post: operations["testFilter"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a factory's notifications
         * @description Needs a key of role viewer or above.
         */
        get: operations["listNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/notifications/{notification}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send the dead events of a notification again
         * @description Needs a key of role runner or above.
         */
        post: operations["replayDeadEvents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/notifications/{notification}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a test event
         * @description The server sends it as it sends all others. 409 if the notification is disabled. Needs a key of role runner or above.
         */
        post: operations["testNotification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Plan the changes that a tree would make to a factory
         * @description Without files, plans the head of the factory's source, which needs a key of role runner. A plan reveals whether a team secret of a name exists. Needs a key of role planner or above.
         */
        post: operations["planFactory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/push": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Accept a git host's push notice, and read the factory's source
         * @description Needs no key: the git host signs the notice with the team secret that the source's settings name.
         */
        post: operations["notifyPush"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Have a factory follow its source again after a rollback
         * @description The server then applies the newest revision of the source, without the call waiting for it. Needs a key of role admin or above.
         */
        post: operations["resumeFactory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/revisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the revisions of a definition, newest first
         * @description Only for managed factories. The server stores the last 200, fewer if their files are large. Needs a key of role viewer or above.
         */
        get: operations["listRevisions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/revisions/{revision}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a revision with its changes
         * @description Only for managed factories. The server stores the last 200, fewer if their files are large. Needs a key of role admin or above.
         */
        get: operations["getRevision"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/revisions/{revision}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore an earlier revision as a new one
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        post: operations["restoreRevision"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Serve an earlier applied revision
         * @description The factory stays there, suspended, until it is resumed. Secrets keep their present values. Needs a key of role admin or above.
         */
        post: operations["rollbackFactory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send work to a factory
         * @description The factory's foreman agent gets the work, if the definition has one: its prompt becomes the base prompt. Needs a key of role runner or above.
         */
        post: operations["createFactoryRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Apply the head of a factory's source, and wait until it is applied or refused
         * @description Needs a key of role admin or above.
         */
        post: operations["syncFactory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/syncs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the attempts to apply a factory's definition, newest first
         * @description Needs a key of role viewer or above.
         */
        get: operations["listSyncs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a factory's webhooks
         * @description Needs a key of role viewer or above.
         */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/webhooks/{webhook_uid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a webhook, live or deleted
         * @description Needs a key of role viewer or above.
         */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /**
         * Delete a webhook
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        patch: operations["updateWebhook"];
        trace?: never;
    };
    "/api/v1/factory/{uid}/webhooks/{webhook_uid}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a webhook's deliveries, newest first
         * @description Needs a key of role viewer or above.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/webhooks/{webhook_uid}/deliveries/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow the accepted deliveries of a webhook
         * @description Server-sent events: first listening, without data, then delivery with a Delivery for each accepted delivery. While a key of role runner has an open stream, and for a minute after, the server stores headers for getDeliveryRequest. A resumed stream may repeat deliveries of the last half minute: compare their IDs. Needs a key of role viewer or above.
         */
        get: operations["streamDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/webhooks/{webhook_uid}/deliveries/{delivery_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a delivery with its payload and the verdict of each automation
         * @description Needs a key of role viewer or above.
         */
        get: operations["getDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/webhooks/{webhook_uid}/deliveries/{delivery_id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay a delivery: start its matching runs again, as a new delivery
         * @description Needs a key of role runner or above.
         */
        post: operations["replayDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/webhooks/{webhook_uid}/deliveries/{delivery_id}/request": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an accepted delivery as it was sent
         * @description The request in the form of HTTP/1.1: request line, stored headers, an empty line, and the body byte for byte. Credentials are omitted, and {token} replaces a token in the URL. Signatures are included: a reader can send the request again under another ID. Outsiders wrote the content: do not trust it. Needs a key of role runner or above.
         */
        get: operations["getDeliveryRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/factory/{uid}/webhooks/{webhook_uid}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate a webhook's secret; the old one stops working at once
         * @description Only for managed factories; for others the answer names the file to edit. The edit is in force when the answer comes. An edit with errors changes nothing; the answer lists them in errors. Needs a key of role admin or above.
         */
        post: operations["rotateSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the API keys
         * @description Needs a key of role admin or above.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create an API key
         * @description Needs a key of role admin or above.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys/{uid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke an API key at once
         * @description Needs a key of role admin or above.
         */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the secrets of the team and of definitions, without values
         * @description Needs a key of role viewer or above.
         */
        get: operations["listSecrets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/secrets/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Create a secret of the team or set its value, which webhooks use from their next apply
         * @description Needs a key of role admin or above.
         */
        put: operations["setSecret"];
        post?: never;
        /**
         * Delete a secret that no source, webhook, agent or automation uses
         * @description Needs a key of role admin or above.
         */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the workers
         * @description A worker that ends in order leaves the list at once. One that is lost stays in it for a day, and is not live. Needs a key of role viewer or above.
         */
        get: operations["listWorkers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        APIKey: {
            /**
             * Format: date-time
             * @description Time of creation
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Time of expiry; null if the key does not expire
             */
            expires_at: string | null;
            /** @description UIDs of the factories that the key is limited to; absent: it is not limited */
            factories?: string[];
            /** @description person: somebody who signs in to the dashboard by auth.login */
            kind: "key" | "person" | (string & {});
            /** @description Purpose of the key; for a person, the person's name */
            name: string;
            /**
             * Format: date-time
             * @description Time of revocation; null for a valid key
             */
            revoked_at: string | null;
            /** @description planner plans; viewer also reads; runner also creates and steers runs; admin may do everything; worker executes runs and cannot use the API */
            role: "planner" | "viewer" | "runner" | "admin" | "worker" | (string & {});
            /**
             * @description Identifier
             * @example key_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
        };
        AdvertisedSkill: {
            /** @description ID of a skill that comes with the service */
            bundled_skill_id?: string;
            /** @description Name of the skill */
            name: string;
            /** @description Path of the skill */
            skill_path?: string;
        };
        AgentIdentity: {
            /** @description Its agentType; FOREMAN for MAIN */
            agent_type: "FOREMAN" | "TRIAGE" | "SPEC" | "IMPLEMENT" | "REVIEW" | "VERIFY" | "CUSTOM" | (string & {});
            /** @description Always true */
            available: boolean;
            /** @description The harness of its runs, or empty for the default one */
            base_harness: string;
            /** @description The language model of its runs, or empty */
            base_model: string;
            /**
             * Format: date-time
             * @description When it was first applied
             */
            created_at: string;
            /** @description credentialStrategy of its file */
            credential_strategy?: "CREATOR" | "EXECUTOR" | (string & {});
            /** @description Name of the runner of its runs, or empty */
            default_runner_uid: string;
            /** @description description of its file, or empty */
            description: string;
            /** @description The environment of its runs, or empty */
            environment_id: string;
            /** @description The factory whose definition has it */
            factory_uid: string;
            /** @description The harness with its settings. type is present for oz, claude, gemini and codex only; base_harness names every harness */
            harness?: components["schemas"]["Harness"];
            /** @description Tools through MCP of its runs, by name; values of env and headers are *** */
            mcp_servers: {
                [key: string]: components["schemas"]["MCPServerConfig"];
            };
            /** @description Memory of the agent; this server has none */
            memory: components["schemas"]["AgentMemory"];
            /** @description Its name */
            name: string;
            /** @description The text of its file: the base prompt of its runs */
            prompt: string;
            /** @description The team secrets that its runs get */
            secrets: components["schemas"]["SecretRef"][];
            /** @description The skills of the definition that it may use, in the form of skill_spec */
            skills: string[];
            /** @description Identifier, for agent_identity_uid of a run */
            uid: string;
            /**
             * Format: date-time
             * @description When its file last changed
             */
            updated_at: string;
            /** @description Where its runs are executed, or empty */
            worker_host: string;
        };
        AgentMemory: {
            /** @description Always empty */
            attached_stores: string[];
            /** @description Always off */
            auto_memory: components["schemas"]["AutoMemory"];
        };
        AgentSkill: {
            /** @description Name of the skill */
            name: string;
            /** @description The skills of this name */
            variants: components["schemas"]["AgentSkillVariant"][];
        };
        AgentSkillSource: {
            /** @description Name of the repository; of a definition outside a repository that of the factory */
            name: string;
            /** @description Owner of the repository; of a definition outside a repository: factory */
            owner: string;
            /** @description Path of the file in it */
            skill_path: string;
        };
        AgentSkillVariant: {
            /** @description The text of the skill */
            base_prompt: string;
            /** @description description of the skill */
            description: string;
            /** @description Always empty */
            environments: string[];
            /**
             * @description Value of skill_spec that names the skill
             * @example acme/factory:skills/triage/SKILL.md
             */
            id: string;
            /** @description Where it comes from */
            source: components["schemas"]["AgentSkillSource"];
        };
        AmbientAgentConfig: {
            /** @description Instructions that precede the prompt */
            base_prompt?: string | null;
            /** @description The environment */
            environment_id?: string | null;
            /** @description What executes the run */
            harness?: components["schemas"]["Harness"];
            /**
             * Format: int64
             * @description How long the session of an agent waits for an answer, in minutes; 30 when absent. Only agents that speak the Agent Client Protocol have sessions that wait
             */
            idle_timeout_minutes?: number | null;
            /** @description Tools through MCP, by name */
            mcp_servers?: {
                [key: string]: components["schemas"]["MCPServerConfig"];
            } | null;
            /** @description The language model */
            model_id?: string | null;
            /** @description Label for grouping and filtering; the skill's name when a run is started from a skill */
            name?: string | null;
            /** @description Repositories to check out, beside those of the factory */
            repositories?: components["schemas"]["RunRepository"][] | null;
            /** @description The runner */
            runner_id?: string | null;
            /** @description Skill as base prompt: owner/repo:skill-name or owner/repo:path/to/SKILL.md */
            skill_spec?: string | null;
            /** @description Where to execute the run */
            worker_host?: string | null;
        };
        AppliedRevision: {
            /**
             * Format: date-time
             * @description Time of the last apply of the revision from the source
             */
            applied_at: string;
            /** @description Author of the revision */
            author: string;
            /**
             * Format: date-time
             * @description Time at which another revision took its place; null for the one in force
             */
            replaced_at: string | null;
            /** @description Identifier of the revision */
            revision: string;
            /** @description First line of the commit message, or summary of the edit */
            subject: string;
        };
        Artifact: {
            /** @description Kind of artifact */
            artifact_type: components["schemas"]["ArtifactType"];
            /** @description Identifier of the artifact */
            artifact_uid: string;
            /**
             * Format: date-time
             * @description Time when the server got the artifact
             */
            created_at: string;
            /** @description The artifact */
            data: components["schemas"]["ArtifactData"];
            /** @description The run that left it */
            run_id: string;
        };
        ArtifactData: {
            /**
             * @description Identifier of the artifact
             * @example art_01j9zy0000e8q9v4m3k2n1p0rs
             */
            artifact_uid: string;
            /** @description PULL_REQUEST: its branch */
            branch?: string;
            /** @description FILE, SCREENSHOT: media type */
            content_type?: string;
            /** @description FILE, SCREENSHOT: address of the content. It needs an API key, too */
            download_url?: string;
            /**
             * Format: date-time
             * @description FILE, SCREENSHOT: time after which to ask for download_url again
             */
            expires_at?: string;
            /** @description FILE, SCREENSHOT: last element of filepath */
            filename?: string;
            /** @description FILE, SCREENSHOT: path below .millwright/artifacts. Changes are named changes.patch and changes.bundle, below the repository's name when the run has several */
            filepath?: string;
            /** @description FILE, SCREENSHOT: media type */
            mime_type?: string;
            /** @description EXTERNAL_REFERENCE: kind of reference */
            reference_type?: string;
            /** @description FILE with changes, PULL_REQUEST: the repository, as owner/name */
            repository?: string;
            /** @description FILE, SCREENSHOT: SHA-256 of the content, in hexadecimal */
            sha256?: string;
            /**
             * Format: int64
             * @description FILE, SCREENSHOT: size
             */
            size_bytes?: number;
            /** @description PULL_REQUEST: open, closed or merged, when the server last looked */
            status?: string;
            /** @description EXTERNAL_REFERENCE: text for people */
            title?: string;
            /** @description PULL_REQUEST, EXTERNAL_REFERENCE: address */
            url?: string;
        };
        ArtifactItem: {
            /** @description Kind of artifact. It decides which fields data has */
            artifact_type: components["schemas"]["ArtifactType"];
            /**
             * Format: date-time
             * @description Time when the server got the artifact
             */
            created_at: string;
            /** @description The artifact */
            data: components["schemas"]["ArtifactItemData"];
        };
        ArtifactItemData: {
            /**
             * @description Identifier of the artifact
             * @example art_01j9zy0000e8q9v4m3k2n1p0rs
             */
            artifact_uid: string;
            /** @description PULL_REQUEST: its branch */
            branch?: string;
            /** @description FILE, SCREENSHOT: last element of filepath */
            filename?: string;
            /** @description FILE, SCREENSHOT: path below .millwright/artifacts. Changes are named changes.patch and changes.bundle, below the repository's name when the run has several */
            filepath?: string;
            /** @description FILE, SCREENSHOT: media type */
            mime_type?: string;
            /** @description EXTERNAL_REFERENCE: kind of reference */
            reference_type?: string;
            /** @description FILE with changes, PULL_REQUEST: the repository, as owner/name */
            repository?: string;
            /**
             * Format: int64
             * @description FILE, SCREENSHOT: size
             */
            size_bytes?: number;
            /** @description PULL_REQUEST: open, closed or merged, when the server last looked */
            status?: string;
            /** @description EXTERNAL_REFERENCE: text for people */
            title?: string;
            /** @description PULL_REQUEST, EXTERNAL_REFERENCE: address */
            url?: string;
        };
        /** @description Type of an artifact. SCREENSHOT: a file that is a PNG, JPEG, WebP or GIF image, by its content; FILE: any other file, changes included; PLAN is never produced. */
        ArtifactType: "FILE" | "SCREENSHOT" | "PLAN" | "PULL_REQUEST" | "EXTERNAL_REFERENCE" | (string & {});
        AttachmentInfo: {
            /** @description Name of the file */
            file_name: string;
            /** @description Its media type */
            mime_type: string;
            /**
             * Format: int64
             * @description Its size
             */
            size_bytes: number;
        };
        AttachmentRequest: {
            /** @description Its content in base64; may be empty */
            data: string | Uint8Array;
            /** @description Name of the file, without a directory */
            file_name: string;
            /** @description Its media type */
            mime_type?: string | null;
        };
        AuditEntry: {
            /**
             * @description Kind of the change
             * @example webhook.disable
             */
            action: string;
            /**
             * @description Name of the API key, author of the revision, or server
             * @example ada
             */
            actor: string;
            /**
             * @description key or session (of the dashboard), server, source (a revision, whose author is not verified), console (a command on the server's machine), or another way to sign in
             * @example key
             */
            actor_kind: string;
            /** @description UID of the API key; empty for others */
            actor_uid: string;
            /**
             * Format: date-time
             * @description Time of the change
             */
            at: string;
            /** @description Further facts, without secrets */
            detail: string;
            /** @description UID of the changed factory; empty for changes of the server */
            factory_uid: string;
            /**
             * @description Address of the client; empty for a change that no request asked for
             * @example 192.0.2.7
             */
            source: string;
            /** @description UID or name of what changed */
            subject: string;
            /**
             * @description Identifier
             * @example aud_0197a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b
             */
            uid: string;
        };
        AutoMemory: {
            /** @description Always false */
            enabled: boolean;
        };
        Automation: {
            /** @description Name of the agent, or empty */
            agent: string;
            /** @description Whether the automation is enabled */
            enabled: boolean;
            /**
             * @description The definition file, relative to the root of the definition
             * @example automations/ci/automation.md
             */
            file: string;
            /** @description Whether a trigger can fire at present */
            fires: boolean;
            /** @description How the automation's runs wait for one another: concurrency, debounce, conversation and retry, as in the file */
            flow?: unknown;
            /**
             * Format: int64
             * @description Line of the automation's first key in the file, from 1
             */
            line: number;
            /** @description Name, as its directory */
            name: string;
            /** @description Triggers */
            triggers: components["schemas"]["AutomationTrigger"][];
            /**
             * @description Identifier
             * @example auto_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /** @description Webhooks that the triggers select */
            webhooks: components["schemas"]["SelectedWebhook"][];
            /** @description Why the automation does not fire, or not for all selected webhooks; else empty */
            why_not: string[];
        };
        AutomationFlow: {
            /** @description Runs that later deliveries may be follow-ups of, last used first; at most 100 */
            conversations: components["schemas"]["FlowRun"][];
            /** @description Deliveries that started nothing, newest first; at most 100 */
            skipped: components["schemas"]["SkippedDelivery"][];
            /** @description Deliveries that the forge's answer decides on, oldest first; at most 1000 */
            undecided: components["schemas"]["UndecidedDelivery"][];
            /** @description Runs that no worker may take yet, oldest first; at most 1000 */
            waiting: components["schemas"]["FlowRun"][];
        };
        AutomationTrigger: {
            /** @description Schedule triggers: the cron expression, in UTC */
            cron?: string;
            /**
             * @description Name of the event
             * @example received
             */
            event: string;
            /** @description Other triggers: the filter */
            filter?: unknown;
            /** @description Webhook triggers: the filter of headers */
            headers?: unknown;
            /** @description Webhook triggers: the payload filter */
            payload?: unknown;
            /**
             * @description Provider of the event
             * @example webhook
             */
            provider: string;
            /** @description Whether this server supports the trigger */
            supported: boolean;
            /** @description Webhook triggers: UIDs of the selected webhooks */
            webhook_ids?: string[];
        };
        AutomationVerdict: {
            /** @description The automation */
            automation_id: string;
            /** @description Result of the filter; of several triggers, that of the first match */
            explanation?: components["schemas"]["Explanation"];
            /** @description Name */
            name: string;
            /**
             * @description Why a payload that matches has no key for concurrency, debounce or conversation, so that its run joins no others there
             * @example [
             *       "concurrency: pull_request.number is not in the payload"
             *     ]
             */
            no_key?: string[] | null;
            /** @description The verdict of each trigger that selects the webhook; empty if the payload is not stored */
            triggers: components["schemas"]["TriggerVerdict"][];
            /** @description Whether the automation starts a run for the payload; unknown if the payload is not stored */
            verdict: "matched" | "not_matched" | "disabled" | "unknown" | (string & {});
        };
        Backtest: {
            /** @description Name of the automation */
            automation: string;
            /** @description Whether all deliveries were judged; false when the time ran out */
            complete: boolean;
            /** @description Deliveries that only one of both matches */
            examples: components["schemas"]["BacktestExamples"];
            /**
             * Format: int64
             * @description Number of them that the present triggers match
             */
            fired: number;
            /**
             * Format: int64
             * @description Number of them that the changed triggers match
             */
            fires: number;
            /**
             * Format: int64
             * @description Number of deliveries that were judged
             */
            looked_at: number;
            /** @description Why the changed triggers match none of 500 or more deliveries */
            never?: components["schemas"]["BacktestNever"];
            /**
             * Format: int64
             * @description Number of them that only the changed triggers match
             */
            newly: number;
            /**
             * Format: int64
             * @description Number of them that only the present triggers match
             */
            no_longer: number;
            /**
             * Format: double
             * @description Deliveries a day that the changed triggers match
             */
            runs_per_day: number;
            /**
             * Format: date-time
             * @description Arrival of the oldest of them
             */
            since?: string;
        };
        BacktestExamples: {
            /** @description Deliveries that only the changed triggers match, newest first; at most 1000 */
            newly: string[];
            /** @description Deliveries that only the present triggers match, newest first; at most 1000 */
            no_longer: string[];
        };
        BacktestNever: {
            /**
             * Format: int64
             * @description How often it failed
             */
            count: number;
            /** @description The key of the filter that failed most often */
            key: string;
            /** @description Values that deliveries have there, as JSON; at most 5 */
            seen: string[];
        };
        BundledSkill: {
            /** @description The skill's ID: input.bundled_skill_id of read_skill actions */
            id: string;
            /** @description Purpose */
            purpose: string;
        };
        BundledSkills: {
            /** @description Purpose of the catalog */
            note: string;
            /** @description The catalog */
            skills: components["schemas"]["BundledSkill"][];
        };
        Condition: {
            /**
             * Format: date-time
             * @description Time of the last change
             */
            last_transition_time: string;
            /** @description The reason, as a sentence */
            message: string;
            /** @description The reason, as one word */
            reason: string;
            /** @description Whether the condition holds */
            status: "True" | "False" | "Unknown" | (string & {});
            /** @description Kind of condition. Ready: the newest revision is applied, and each automation can fire. Reconciling: it is not applied yet, and the server keeps trying. Stalled: it is not applied until somebody acts */
            type: "Ready" | "Reconciling" | "Stalled" | (string & {});
        };
        Conversation: {
            /** @description The conversation's ID */
            conversation_id: string;
            /** @description The conversation, with one step for each execution */
            steps: components["schemas"]["ConversationStep"][];
        };
        ConversationBlock: {
            /** @description action_result: the ID of its action */
            action_id?: string;
            /**
             * @description action, action_result: kind of action. Presets write command, files, search, integration and skill
             * @example skill
             */
            category?: string;
            /** @description event: its data */
            data?: unknown;
            /** @description action: its ID */
            id?: string;
            /** @description action: the input; for read_skill: skill_path and, for bundled skills, bundled_skill_id */
            input?: unknown;
            /**
             * @description Name of the action or event; read_skill if a skill was loaded
             * @example read_skill
             */
            name?: string;
            /** @description action_result: the output */
            output?: unknown;
            /** @description action_result: the end state. Presets write completed, failed and denied */
            state?: string;
            /** @description text: the text */
            text?: string;
            /** @description Kind of the block */
            type: "text" | "action" | "action_result" | "event" | (string & {});
        };
        ConversationFollowupResponse: {
            /** @description The message's ID */
            followup_id: string;
            /** @description queued_prompt: the message joined the prompt of the queued run. queue_pending: it follows when the execution ends. handoff_execution: the run had ended, and is queued again. live_session: the agent's living session gets it when its present turn ends */
            outcome: "queued_prompt" | "queue_pending" | "handoff_execution" | "live_session" | (string & {});
            /** @description The newest run of the conversation, which got the message */
            run_id: string;
        };
        ConversationMessage: {
            /** @description The parts of the message */
            content: components["schemas"]["ConversationBlock"][];
            /** @description Author of the message */
            role: "user" | "assistant" | (string & {});
            /**
             * Format: date-time
             * @description Time of the message
             */
            timestamp: string;
        };
        ConversationStep: {
            /** @description The step's ID */
            id: string;
            /** @description The messages, oldest first */
            messages: components["schemas"]["ConversationMessage"][];
            /** @description Nested steps: output of earlier attempts, whose worker was lost or returned the run */
            steps: components["schemas"]["ConversationStep"][];
        };
        CreateAPIKeyRequest: {
            /**
             * Format: date-time
             * @description Time of expiry, instead of expires_in
             */
            expires_at?: string | Date;
            /**
             * @description Lifetime in days, hours, minutes and seconds; absent: the key does not expire
             * @example 24h
             */
            expires_in?: string;
            /** @description UIDs of the factories that the key is limited to; absent: it is not limited */
            factories?: string[];
            /** @description Purpose */
            name: string;
            /** @description Role of the key */
            role: "planner" | "viewer" | "runner" | "admin" | "worker" | (string & {});
        };
        CreateWebhookRequest: {
            /** @description How senders authenticate */
            auth_mode?: "token" | "url_token" | "signature" | (string & {});
            /**
             * Format: int64
             * @description The delivery budget of each sender; absent as the server has it
             */
            deliveries_per_minute?: number;
            /** @description Header with the sender's own event ID */
            delivery_id_header?: string;
            /**
             * @description How long the hash of a body counts as an identity, 1m to 30d; absent for ever
             * @example 10m
             */
            duplicate_window?: string;
            /** @description Whether the webhook accepts deliveries; true when absent */
            enabled?: boolean;
            /** @description Whether the webhook answers the provider's set-up probes */
            handshake?: boolean;
            /**
             * @description Name
             * @example alerts
             */
            name: string;
            /** @description For auth_mode signature: the provider's signing secret. Absent: set later, or generated for standard_webhooks and svix */
            secret?: string;
            /** @description Name of a new or existing secret; absent: a name derived from the webhook's */
            secret_name?: string;
            /** @description For auth_mode signature: the provider's signing scheme */
            signature_scheme?: string;
        };
        CreatedAPIKey: {
            /**
             * Format: date-time
             * @description Time of creation
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Time of expiry; null if the key does not expire
             */
            expires_at: string | null;
            /** @description UIDs of the factories that the key is limited to; absent: it is not limited */
            factories?: string[];
            /** @description person: somebody who signs in to the dashboard by auth.login */
            kind: "key" | "person" | (string & {});
            /** @description Purpose of the key; for a person, the person's name */
            name: string;
            /**
             * Format: date-time
             * @description Time of revocation; null for a valid key
             */
            revoked_at: string | null;
            /** @description planner plans; viewer also reads; runner also creates and steers runs; admin may do everything; worker executes runs and cannot use the API */
            role: "planner" | "viewer" | "runner" | "admin" | "worker" | (string & {});
            /** @description The key; no other answer contains it */
            secret: string;
            /**
             * @description Identifier
             * @example key_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
        };
        DeferredResolution: {
            /** @description Key */
            field: string;
            /** @description Kind of the named resource */
            kind: string;
            /** @description File */
            path: string;
        };
        DefinitionFile: {
            /** @description Text of the file */
            content: string;
            /**
             * @description Path relative to the root of the tree, with forward slashes
             * @example webhooks/alerts.yaml
             */
            path: string;
        };
        Delivery: {
            /** @description The answer to the sender; absent for a replay */
            answer?: components["schemas"]["DeliveryAnswer"];
            /**
             * Format: int64
             * @description Number of requests that share this row; above 1 only if many were rejected
             */
            count: number;
            /**
             * @description Identifier
             * @example dlv_01h455vb4pex5vsknk084sn02q
             */
            delivery_id: string;
            /** @description For a duplicate: ID of the accepted delivery */
            duplicate_of?: string;
            /** @description The provider's name of the event, escaped, at most 128 characters */
            event?: string;
            /** @description The automations for which the delivery started no run of its own, or one that waits for more deliveries */
            flow?: components["schemas"]["FlowDecision"][];
            /** @description Identity of the delivery, escaped, at most 128 characters; empty if an earlier check refused it */
            identity: string;
            /** @description Origin of the identity; empty without an identity */
            identity_source: "" | "header" | "provider" | "service_header" | "body_hash" | (string & {});
            /**
             * @description The outcome, as text for people
             * @example Rejected (auth)
             */
            label: string;
            /**
             * Format: date-time
             * @description Time of the last request, if count is above 1
             */
            last_received_at?: string;
            /** @description Outcome */
            outcome: "accepted" | "duplicate" | "rejected_auth" | "rejected_invalid_json" | "rejected_too_large" | "handshake" | (string & {});
            /** @description The precise cause; may be empty */
            reason: string;
            /**
             * Format: date-time
             * @description Time of arrival, or that of the first of count requests
             */
            received_at: string;
            /** @description For a replay: ID of the original delivery */
            replay_of?: string;
            /**
             * @description A few headers of the request, each escaped and at most 128 characters: content type, client, event and delivery ID. The sender chose them
             * @example {
             *       "User-Agent": "GitHub-Hookshot/1"
             *     }
             */
            request_headers?: {
                [key: string]: string;
            };
            /** @description The started runs, oldest first */
            runs: components["schemas"]["DeliveryRun"][];
            /** @description Address of the sender, or its IPv6 network */
            sender: string;
            /**
             * Format: int64
             * @description Size of the body in bytes; null if unknown; the smallest if count is above 1
             */
            size_bytes: number | null;
            /**
             * Format: int64
             * @description The largest size, if count is above 1
             */
            size_bytes_max?: number;
            /** @description Whether the delivery was accepted, and neither started a run nor went to one */
            started_nothing?: boolean;
        };
        DeliveryAnswer: {
            /**
             * @description The error in the body of a refusal, or the outcome of a success
             * @example unauthorized
             */
            code: string;
            /**
             * Format: int64
             * @description HTTP status
             * @example 401
             */
            status: number;
        };
        DeliveryCounts: {
            /**
             * Format: int64
             * @description Accepted
             */
            accepted: number;
            /**
             * Format: int64
             * @description Duplicates of accepted deliveries
             */
            duplicate: number;
            /**
             * Format: int64
             * @description Answered set-up probes
             */
            handshake: number;
            /**
             * Format: int64
             * @description Failed authentications
             */
            rejected_auth: number;
            /**
             * Format: int64
             * @description Invalid JSON
             */
            rejected_invalid_json: number;
            /**
             * Format: int64
             * @description Too large
             */
            rejected_too_large: number;
        };
        DeliveryDetail: {
            /** @description The answer to the sender; absent for a replay */
            answer?: components["schemas"]["DeliveryAnswer"];
            /** @description The verdict of each automation that selects the webhook, evaluated now */
            automations: components["schemas"]["AutomationVerdict"][];
            /**
             * Format: int64
             * @description Number of requests that share this row; above 1 only if many were rejected
             */
            count: number;
            /** @description Whether the definition has changed since the delivery, so the verdicts may have changed */
            definition_changed: boolean;
            /**
             * @description Identifier
             * @example dlv_01h455vb4pex5vsknk084sn02q
             */
            delivery_id: string;
            /** @description For a duplicate: ID of the accepted delivery */
            duplicate_of?: string;
            /** @description The provider's name of the event, escaped, at most 128 characters */
            event?: string;
            /** @description The automations for which the delivery started no run of its own, or one that waits for more deliveries */
            flow?: components["schemas"]["FlowDecision"][];
            /** @description Identity of the delivery, escaped, at most 128 characters; empty if an earlier check refused it */
            identity: string;
            /** @description Origin of the identity; empty without an identity */
            identity_source: "" | "header" | "provider" | "service_header" | "body_hash" | (string & {});
            /**
             * @description The outcome, as text for people
             * @example Rejected (auth)
             */
            label: string;
            /**
             * Format: date-time
             * @description Time of the last request, if count is above 1
             */
            last_received_at?: string;
            /** @description Outcome */
            outcome: "accepted" | "duplicate" | "rejected_auth" | "rejected_invalid_json" | "rejected_too_large" | "handshake" | (string & {});
            /** @description The body of an accepted delivery, while it is stored */
            payload?: unknown;
            /** @description The precise cause; may be empty */
            reason: string;
            /**
             * Format: date-time
             * @description Time of arrival, or that of the first of count requests
             */
            received_at: string;
            /** @description For a replay: ID of the original delivery */
            replay_of?: string;
            /**
             * @description A few headers of the request, each escaped and at most 128 characters: content type, client, event and delivery ID. The sender chose them
             * @example {
             *       "User-Agent": "GitHub-Hookshot/1"
             *     }
             */
            request_headers?: {
                [key: string]: string;
            };
            /** @description The started runs, oldest first */
            runs: components["schemas"]["DeliveryRun"][];
            /** @description Address of the sender, or its IPv6 network */
            sender: string;
            /**
             * Format: int64
             * @description Size of the body in bytes; null if unknown; the smallest if count is above 1
             */
            size_bytes: number | null;
            /**
             * Format: int64
             * @description The largest size, if count is above 1
             */
            size_bytes_max?: number;
            /** @description Whether the delivery was accepted, and neither started a run nor went to one */
            started_nothing?: boolean;
            /**
             * @description The events of a provider that the delivery is, as triggers name them
             * @example [
             *       "github/pull_request_opened"
             *     ]
             */
            trigger_events: string[];
        };
        DeliveryRun: {
            /** @description Automation that started the run */
            automation_id: string;
            /** @description Identifier of the run */
            run_id: string;
            /** @description State */
            state: string;
            /** @description Title */
            title: string;
            /** @description What keeps a queued run from workers */
            waits_for?: "concurrency" | "debounce" | "retry" | "budget" | (string & {});
        };
        DroppedRuns: {
            /** @description Identifiers of the runs */
            run_ids: string[];
        };
        EditFileRequest: {
            /** @description The text of the file */
            content: string;
        };
        Environment: {
            /** @description What is known of it */
            config: components["schemas"]["EnvironmentConfig"];
            /**
             * Format: date-time
             * @description When a definition that names it was last applied, or else the server was started
             */
            last_updated: string;
            /** @description Always false: runs set up their environments themselves */
            setup_failed: boolean;
            /** @description Its identifier, as definitions have it */
            uid: string;
        };
        EnvironmentConfig: {
            /** @description Image of containers; empty: that of the harness */
            docker_image: string;
            /** @description Repositories to check out, of any forge */
            github_repos: components["schemas"]["EnvironmentRepository"][];
            /** @description The same as the identifier */
            name: string;
            /** @description Commands that run before the harness */
            setup_commands: string[];
        };
        EnvironmentRepository: {
            /** @description The account or organisation */
            owner: string;
            /** @description The name of the repository */
            repo: string;
        };
        Error: {
            /**
             * @description Kind of error
             * @example invalid_request
             */
            code: string;
            /** @description The exact problem */
            detail?: string;
            /** @description Title, or title (detail) */
            error: string;
            /** @description The invalid fields */
            errors?: components["schemas"]["FieldError"][] | null;
            /** @description Path of the request */
            instance?: string;
            /** @description Whether the same request may succeed later */
            retryable: boolean;
            /**
             * Format: int64
             * @description HTTP status
             */
            status: number;
            /** @description Short text for the code */
            title: string;
            /** @description ID of the request, also in the X-Request-Id header */
            trace_id?: string;
            /**
             * @description URI reference that ends in the code
             * @example /errors/invalid-request
             */
            type: string;
        };
        Event: {
            /**
             * Format: int64
             * @description Number of attempts
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it happened
             */
            created_at: string;
            /**
             * @description Identifier, which the receiver gets as webhook-id
             * @example evt_01h455vb4pex5vsknk084sn02q
             */
            event_uid: string;
            /**
             * Format: date-time
             * @description Time of the next attempt; only for a pending event
             */
            next_attempt_at?: string;
            /** @description Name of the notification */
            notification: string;
            /** @description Why it waits, is dead or was dropped */
            reason?: string;
            /** @description The run that it is about */
            run_id?: string;
            /** @description pending: it waits for its next attempt. sent: the receiver answered 2xx. dead: it was given up. dropped: its notification was deleted or disabled */
            state: "pending" | "sent" | "dead" | "dropped" | (string & {});
            /**
             * @description What happened
             * @example run.failed
             */
            type: string;
            /**
             * Format: date-time
             * @description Time of the last change
             */
            updated_at: string;
        };
        EventAttempt: {
            /** @description The first 1 KiB of the answer, for keys of role admin */
            answer?: string;
            /**
             * Format: date-time
             * @description When it began
             */
            at: string;
            /**
             * Format: int64
             * @description How long it took
             */
            duration_millis: number;
            /** @description Why it failed */
            error?: string;
            /**
             * Format: int64
             * @description From 1
             */
            number: number;
            /**
             * Format: int64
             * @description Status of the answer; absent without one
             */
            status?: number;
        };
        EventDetail: {
            /** @description The last 10 attempts, oldest first */
            attempt_list: components["schemas"]["EventAttempt"][];
            /**
             * Format: int64
             * @description Number of attempts
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it happened
             */
            created_at: string;
            /** @description What it tells, without links */
            data: unknown;
            /**
             * @description Identifier, which the receiver gets as webhook-id
             * @example evt_01h455vb4pex5vsknk084sn02q
             */
            event_uid: string;
            /**
             * Format: date-time
             * @description Time of the next attempt; only for a pending event
             */
            next_attempt_at?: string;
            /** @description Name of the notification */
            notification: string;
            /** @description Why it waits, is dead or was dropped */
            reason?: string;
            /** @description The run that it is about */
            run_id?: string;
            /** @description pending: it waits for its next attempt. sent: the receiver answered 2xx. dead: it was given up. dropped: its notification was deleted or disabled */
            state: "pending" | "sent" | "dead" | "dropped" | (string & {});
            /**
             * @description What happened
             * @example run.failed
             */
            type: string;
            /**
             * Format: date-time
             * @description Time of the last change
             */
            updated_at: string;
        };
        Explanation: {
            /** @description Whether the server has to ask the forge before it decides. The delivery's flow has the decision */
            asks_forge?: boolean;
            /** @description Every operator of every field, in the order of the filter */
            leaves: components["schemas"]["LeafExplanation"][];
            /** @description Whether the filter matches */
            matched: boolean;
            /** @description The reason, if the filter as a whole decides: it is absent or empty, or the body is not an object */
            reason?: string;
        };
        Factory: {
            /** @description Defaults of runs; agents and automations override them */
            agent_defaults: components["schemas"]["FactoryAgentDefaults"];
            /** @description The agents of the applied definition, by name */
            agents: components["schemas"]["FactoryAgent"][];
            /** @description alias of factory.yaml, or empty */
            alias: string;
            /** @description Host of the source, judged by its address */
            code_forge: "GITHUB" | "GITLAB" | "AZURE_DEVOPS" | "NONE" | (string & {});
            /** @description code_forge alone */
            code_forges: string[];
            /** @description Conditions Ready, Reconciling and Stalled */
            conditions: components["schemas"]["Condition"][];
            /** @description Number of resources in the applied definition */
            counts: components["schemas"]["FactoryCounts"];
            /**
             * Format: date-time
             * @description Time at which the factory was first configured
             */
            created_at: string;
            /** @description credentialStrategy of factory.yaml; EXECUTOR where it has none */
            credential_strategy: "CREATOR" | "EXECUTOR" | (string & {});
            /** @description environmentId of agentDefaults */
            default_environment: string | null;
            /** @description The language model of agentDefaults */
            default_model: string | null;
            /** @description description of factory.yaml, or empty */
            description: string;
            /** @description Whether the settings no longer name the factory; its webhooks answer 404 */
            detached: boolean;
            /** @description name of factory.yaml, for display only */
            display_name?: string;
            /** @description integrations of factory.yaml */
            integrations: components["schemas"]["FactoryIntegration"][];
            /** @description Name in the server's settings, which identifies the factory */
            name: string;
            /**
             * @description Public key of age: millwright secret seal encrypts secrets for the definition to it
             * @example age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kudxr5n8qvg6lk9
             */
            recipient: string;
            /** @description repositories of factory.yaml */
            repositories: components["schemas"]["Repository"][];
            /** @description Since a rollback; else absent */
            rollback?: components["schemas"]["FactoryRollback"];
            /** @description Always empty */
            scorer_defaults: {
                [key: string]: unknown;
            };
            /** @description Always empty */
            scoring: {
                [key: string]: unknown;
            };
            /** @description Source of the definition */
            source: components["schemas"]["FactorySource"];
            /** @description Whether the factory does not follow its source: its settings suspend it, or it was rolled back */
            suspended: boolean;
            /** @description State of the definition */
            sync: components["schemas"]["FactorySync"];
            /** @description Always empty: a server has one team */
            team_uid: string;
            /**
             * @description Identifier
             * @example fac_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /** @description Webhooks that a forge does not have as their files state */
            unregistered: components["schemas"]["UnregisteredWebhook"][];
            /**
             * Format: date-time
             * @description Time of the last change of its settings or factory.yaml
             */
            updated_at: string;
        };
        FactoryAgent: {
            /** @description Name */
            name: string;
            /**
             * @description agentType of the agent
             * @example FOREMAN
             */
            type: string;
            /** @description Identifier, for agent_identity_uid of a run */
            uid: string;
        };
        FactoryAgentDefaults: {
            /** @description Name of the runner, or empty */
            default_runner_uid: string;
            /** @description What executes runs */
            harness?: components["schemas"]["FactoryHarness"];
            /** @description Tools through MCP, by name; values of env and headers are ***, but for references to secrets */
            mcp_servers: {
                [key: string]: unknown;
            };
            /** @description The team secrets that runs get */
            secrets: components["schemas"]["FactorySecret"][];
            /** @description Where runs are executed, or empty */
            worker_host: string;
        };
        FactoryCounts: {
            /**
             * Format: int64
             * @description Agents
             */
            agents: number;
            /**
             * Format: int64
             * @description Automations, disabled ones included
             */
            automations: number;
            /**
             * Format: int64
             * @description Runners
             */
            runners: number;
            /**
             * Format: int64
             * @description Skills
             */
            skills: number;
            /**
             * Format: int64
             * @description Webhooks, disabled ones included
             */
            webhooks: number;
        };
        FactoryHarness: {
            /** @description The language model */
            model_id?: string;
            /** @description How hard the model is to think */
            reasoning_level?: string;
            /** @description Name of a configured harness */
            type: string;
        };
        FactoryIntegration: {
            /**
             * @description Its kind
             * @example linear
             */
            type: string;
        };
        FactoryRollback: {
            /**
             * Format: date-time
             * @description Time of the rollback
             */
            at: string;
            /** @description Name of the API key that rolled back */
            by: string;
        };
        FactoryRunRequest: {
            /** @description Changes to the configuration in the definition */
            config?: components["schemas"]["AmbientAgentConfig"];
            /** @description The task */
            prompt: string;
            /** @description The ticket of the task */
            ticket_ref?: string | null;
            /** @description URL of the ticket */
            ticket_url?: string | null;
            /** @description Title for people; the first line of the prompt when absent */
            title?: string | null;
        };
        FactoryRunResponse: {
            /** @description The factory */
            factory_uid: string;
            /** @description Name of the foreman agent; empty if the definition has none */
            foreman_agent: string;
            /** @description The run's ID */
            run_id: string;
            /** @description The run's page on the dashboard */
            run_url: string;
            /** @description State of the run */
            state: components["schemas"]["RunState"];
            /** @description As in the request */
            ticket_ref: string;
        };
        FactorySecret: {
            /** @description Name of the secret */
            name: string;
        };
        FactorySource: {
            /** @description The watched branch; empty unless kind is git */
            branch: string;
            /** @description A git branch, a directory, or the server itself */
            kind: "git" | "dir" | "managed" | (string & {});
            /** @description The directory, or the path in the repository */
            path: string;
            /** @description Address of the repository, without credentials; empty unless kind is git */
            url: string;
        };
        FactorySync: {
            /** @description The revision in force; empty before the first apply */
            applied_revision: string;
            /** @description Name and key of the signer of the revision in force, if the source verifies signatures; else empty */
            applied_signer: string;
            /** @description The revision of the last attempt; empty before the first attempt */
            attempted_revision: string;
            /**
             * Format: date-time
             * @description Time of the last apply
             */
            last_applied_at: string | null;
            /**
             * Format: date-time
             * @description Time at which the last attempt ended
             */
            last_attempted_at: string | null;
            /** @description Reason why the last attempt was refused or failed, in one line; else empty */
            message: string;
            /** @description Problems that the last attempt found */
            problems: components["schemas"]["Problem"][];
            /** @description Outcome of the last attempt to apply; after refused and failed, the last applied definition stays in force */
            state: "pending" | "applied" | "refused" | "failed" | (string & {});
        };
        FieldError: {
            /**
             * @description Path of the field
             * @example config.skill_spec
             */
            field: string;
            /** @description The problem */
            message: string;
        };
        FileContent: {
            /** @description Text of the file */
            content: string;
            /**
             * @description Path relative to the root of the definition
             * @example webhooks/alerts.yaml
             */
            path: string;
            /**
             * @description Revision of the file: base_revision for an edit
             * @example r12
             */
            revision: string;
        };
        FileDifference: {
            /** @description Kind of change */
            action: "create" | "update" | "delete" | (string & {});
            /** @description The changed lines, as a unified diff; empty if the answer would be too long */
            difference: string;
            /** @description Path relative to the root of the definition */
            path: string;
        };
        FilterTestRequest: {
            /** @description A stored delivery of this factory */
            delivery_id?: string;
            /**
             * @description With provider: the event
             * @example pull_request_opened
             */
            event?: string;
            /** @description With provider: test the provider's example of the event, instead of delivery_id */
            example?: boolean;
            /** @description The payload filter, an object; absent for none */
            filter?: unknown;
            /** @description The filter as YAML or JSON, instead of filter: the text under payload in an automation's file, or under filter, with its webhook_ids and headers */
            filter_text?: string;
            /**
             * @description The filter of headers, as in an automation's file; absent for none
             * @example {
             *       "X-Event-Kind": [
             *         "push"
             *       ],
             *       "x-input": true
             *     }
             */
            headers?: unknown;
            /** @description A body to test, instead of delivery_id */
            payload?: unknown;
            /**
             * @description For a trigger of a provider: the provider, such as github. filter is then the trigger's filter
             * @example github
             */
            provider?: string;
            /**
             * @description With payload: the headers that it came with. If the header that names a provider's event is absent, the payload counts as the event
             * @example {
             *       "X-GitHub-Event": "pull_request",
             *       "x-input": true
             *     }
             */
            request_headers?: {
                [key: string]: string;
            };
            /** @description Webhooks that the trigger selects; absent for any */
            webhook_ids?: string[];
        };
        FilterTestResponse: {
            /** @description Result of the filter on the payload, for each leaf */
            explanation: components["schemas"]["Explanation"];
            /** @description Whether the payload matches the filter */
            payload_check: boolean;
            /** @description Whether the trigger selects the delivery's webhook, and that is enabled; without a delivery, whether it selects an enabled webhook */
            webhook_check: boolean;
            /** @description Reason for the result of the webhook check */
            webhook_reason: string;
            /** @description Whether both checks pass */
            would_trigger: boolean;
        };
        FlowDecision: {
            /** @description The automation */
            automation_id: string;
            /** @description skipped: nothing started. waits: the forge's answer decides. debounced: it is one of the deliveries of a run. follow-up: it is a message to a run */
            decision: "skipped: concurrency" | "skipped: queue full" | "skipped: forge" | "skipped: trigger" | "skipped: newer" | "waits: forge" | "debounced" | "follow-up" | (string & {});
            /** @description Why, in words */
            detail?: string;
            /** @description The run that the delivery went to */
            run_id?: string;
        };
        FlowRun: {
            /**
             * Format: date-time
             * @description Time of creation
             */
            created_at: string;
            /** @description The newest delivery */
            delivery_id?: string;
            /** @description Identifier of the run */
            run_id: string;
            /**
             * Format: date-time
             * @description When a run that waits for a time is ready
             */
            starts_at?: string;
            /** @description State */
            state: string;
            /** @description Title */
            title: string;
            /** @description What keeps a queued run from workers */
            waits_for?: "concurrency" | "debounce" | "retry" | (string & {});
        };
        Harness: {
            /** @description The language model */
            model_id?: string | null;
            /** @description Effort of the model */
            reasoning_level?: string | null;
            /** @description Name of a configured harness; oz and absence mean the default */
            type?: string | null;
        };
        HeldFile: {
            /**
             * @description Path relative to the root of the definition
             * @example webhooks/alerts.yaml
             */
            path: string;
            /**
             * Format: int64
             * @description Its size in bytes
             */
            size: number;
        };
        ImportFilesRequest: {
            /** @description The whole tree; the call deletes all other files */
            files: components["schemas"]["DefinitionFile"][];
        };
        LanguageModel: {
            /** @description The same as the identifier */
            display_name: string;
            /** @description Its identifier: model_id of a run */
            id: string;
            /** @description Its provider, judged by its identifier */
            provider: "ANTHROPIC" | "GOOGLE" | "OPENAI" | "UNKNOWN" | (string & {});
            /** @description Always false: not known */
            vision_supported: boolean;
        };
        LeafExplanation: {
            /** @description The operand as JSON, at most 200 bytes */
            expected: string;
            /** @description The value in the body as JSON, at most 200 bytes */
            found?: string;
            /** @description The operator */
            operator: "in" | "not_in" | "exists" | (string & {});
            /** @description Whether the operator holds */
            passed: boolean;
            /** @description The field's keys in the filter */
            path: string[];
            /** @description Whether the body has the field */
            present: boolean;
            /**
             * @description Path in the body
             * @example commits[2].author
             */
            where: string;
        };
        ListAPIKeysResponse: {
            /** @description The keys, newest first, revoked ones included */
            keys: components["schemas"]["APIKey"][];
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
        };
        ListAgentIdentitiesResponse: {
            /** @description The agents, by factory and name */
            agents: components["schemas"]["AgentIdentity"][];
        };
        ListAgentSkillsResponse: {
            /** @description The skills, by name */
            agents: components["schemas"]["AgentSkill"][];
        };
        ListAppliedResponse: {
            /** @description The revisions, the last applied first */
            revisions: components["schemas"]["AppliedRevision"][];
        };
        ListAuditResponse: {
            /** @description The changes, newest first */
            entries: components["schemas"]["AuditEntry"][];
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
        };
        ListAutomationsResponse: {
            /** @description The automations, by name */
            automations: components["schemas"]["Automation"][];
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
        };
        ListDeliveriesResponse: {
            /** @description The deliveries, newest first */
            deliveries: components["schemas"]["Delivery"][];
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
        };
        ListEnvironmentsResponse: {
            /** @description The environments, by identifier */
            environments: components["schemas"]["Environment"][];
        };
        ListEventsResponse: {
            /** @description The events, newest first */
            events: components["schemas"]["Event"][];
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
        };
        ListFactoriesResponse: {
            /** @description The factories, by name */
            factories: components["schemas"]["Factory"][];
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
        };
        ListFilesResponse: {
            /** @description The files, by path */
            files: components["schemas"]["HeldFile"][];
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
            /**
             * @description Revision of the files
             * @example r12
             */
            revision: string;
        };
        ListModelsResponse: {
            /** @description The first model that the settings list for the default harness; empty when they list none */
            default_model_id: string;
            /** @description The models, by identifier */
            models: components["schemas"]["LanguageModel"][];
        };
        ListNotificationsResponse: {
            /** @description The applied notifications, by name */
            notifications: components["schemas"]["Notification"][];
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
        };
        ListOutputsResponse: {
            /** @description The outputs, oldest first */
            outputs: components["schemas"]["RunOutput"][];
        };
        ListRevisionsResponse: {
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
            /** @description The revisions, newest first */
            revisions: components["schemas"]["Revision"][];
        };
        ListRunsResponse: {
            /** @description Whether there are more runs */
            page_info: components["schemas"]["PageInfo"];
            /** @description The runs */
            runs: components["schemas"]["RunItem"][];
        };
        ListSchedulesResponse: {
            /** @description The schedules, by factory and automation */
            schedules: components["schemas"]["Schedule"][];
        };
        ListSecretsResponse: {
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
            /** @description The secrets, by name */
            secrets: components["schemas"]["Secret"][];
        };
        ListSyncsResponse: {
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
            /** @description The attempts, newest first */
            syncs: components["schemas"]["Sync"][];
        };
        ListTasksResponse: {
            /** @description Whether there are more */
            page_info: components["schemas"]["PageInfo"];
            /** @description The runs */
            tasks: components["schemas"]["RunItem"][];
        };
        ListWebhooksResponse: {
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
            /** @description The webhooks, by name */
            webhooks: components["schemas"]["Webhook"][];
        };
        ListWorkersResponse: {
            /** @description Whether there is another page */
            page_info: components["schemas"]["PageInfo"];
            /** @description The workers seen within a day, by UID */
            workers: components["schemas"]["Worker"][];
        };
        MCPServerConfig: {
            /** @description Its arguments */
            args?: string[] | null;
            /** @description The program */
            command?: string | null;
            /** @description Environment variables; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or the same server in the applied definition */
            env?: {
                [key: string]: string;
            } | null;
            /** @description HTTP headers; values are returned as ***. ${secret:NAME} is a team secret. It needs a key of role admin, or an applied definition that grants the secret to the same server */
            headers?: {
                [key: string]: string;
            } | null;
            /** @description URL of the server */
            url?: string | null;
            /** @description Identifier of a shared server */
            warp_id?: string | null;
        };
        ModelTokenUsage: {
            /** @description The model */
            model_id: string;
            /**
             * Format: int64
             * @description Tokens in and out
             */
            total_tokens: number;
        };
        Notification: {
            /**
             * Format: int64
             * @description Number of its events that were given up
             */
            dead: number;
            /** @description What it is for */
            description?: string;
            /** @description Whether it gets events */
            enabled: boolean;
            /** @description The events that it asks for */
            events: string[];
            /**
             * @description The definition file
             * @example notifications/ops.yaml
             */
            file: string;
            /** @description Narrows the events of runs */
            filter: components["schemas"]["NotificationFilter"];
            /** @description Signed JSON by Standard Webhooks, or a message */
            format: "standard" | "slack" | (string & {});
            /**
             * Format: int64
             * @description Line of the first key in the file, from 1
             */
            line: number;
            /** @description Name, as its file */
            name: string;
            /** @description The team secret that signs the events */
            secret_name?: string;
            /**
             * @description Identifier
             * @example ntf_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /** @description The address of the receiver; absent if a secret holds it */
            url?: string;
            /** @description The team secret that holds the address */
            url_secret_name?: string;
            /**
             * Format: int64
             * @description Number of events that wait for it
             */
            waiting: number;
        };
        NotificationFilter: {
            /** @description Only runs of these automations; empty: of all */
            automation: string[];
            /** @description Only runs that ended in these states; empty: in any */
            state: string[];
        };
        OpenPullRequest: {
            /** @description Text */
            body?: string;
            /** @description owner/name, if the run changed several */
            repository?: string;
            /** @description The run's title when absent */
            title?: string;
        };
        PageInfo: {
            /** @description Whether there is another page */
            has_next_page: boolean;
            /** @description Cursor of the next page; empty on the last page */
            next_cursor: string;
        };
        Plan: {
            /** @description What changed triggers would have done with the newest stored deliveries: at most 5000 of 7 days, in 2 seconds */
            backtest?: components["schemas"]["Backtest"][];
            /** @description The applied revision; empty before the first apply */
            base_revision: string;
            /** @description Change of every resource, by kind and name; none if the tree has errors */
            changes: components["schemas"]["PlanChange"][];
            /** @description The name of each deleted webhook that an automation of the tree selects, by UID */
            deleted_webhook_uids?: {
                [key: string]: string;
            };
            /** @description The planned revision; empty for files in the request */
            head_revision: string;
            /** @description Problems of the tree, by file and place */
            problems: components["schemas"]["Problem"][];
            /** @description Secrets whose newer value would come into force, by name */
            secrets: components["schemas"]["PlanSecret"][];
            /** @description Rules that were not checked */
            state_dependent_checks_not_run?: string[];
            /** @description The present or future UID of each webhook in the tree, by name */
            webhook_uids?: {
                [key: string]: string;
            };
            /** @description Whether the server would accept the tree */
            would_apply: boolean;
        };
        PlanChange: {
            /** @description Kind of change; restore: a webhook whose name returns within 30 days, with its UID and URL */
            action: "create" | "restore" | "update" | "delete" | "unchanged" | (string & {});
            /** @description For an update: the changed keys */
            fields: components["schemas"]["PlanField"][];
            /** @description The file that declares it */
            file: string;
            /** @description Kind of the resource */
            kind: "factory" | "webhook" | "automation" | "agent" | "runner" | "environment" | "skill" | (string & {});
            /**
             * Format: int64
             * @description Line of the resource's first key in the file, from 1
             */
            line: number;
            /** @description Name; agent/skill for the skill of an agent */
            name: string;
            /** @description The UID; for a new webhook, its future UID */
            uid?: string;
        };
        PlanField: {
            /** @description The key */
            name: string;
            /** @description The new value; null for none */
            new: unknown;
            /** @description The old value; null for none */
            old: unknown;
        };
        PlanRequest: {
            /** @description As if the apply were allowed to delete all webhooks, or more than half of them */
            allow_prune?: boolean;
            /** @description As if the apply were allowed to replace a webhook by one of the same content under another name */
            allow_rename?: boolean;
            /** @description The whole tree; absent: the head of the factory's source, which needs the role runner */
            files?: components["schemas"]["DefinitionFile"][];
        };
        PlanSecret: {
            /** @description Name of the secret */
            name: string;
            /**
             * Format: int64
             * @description The new version
             */
            version: number;
            /** @description Names of the webhooks that would use it */
            webhooks: string[];
        };
        Problem: {
            /**
             * @description Name of the rule
             * @example secret-missing
             */
            code: string;
            /**
             * Format: int64
             * @description Column, from 1, in code points
             */
            column: number;
            /**
             * Format: int64
             * @description Column after the last character
             */
            end_column: number;
            /**
             * Format: int64
             * @description Line where the place ends
             */
            end_line: number;
            /** @description The source line and a caret line below it, as validate prints them, if known */
            excerpt?: string;
            /** @description The next step */
            hint?: string;
            /**
             * Format: int64
             * @description Line, from 1
             */
            line: number;
            /** @description The problem */
            message: string;
            /** @description File, relative to the root of the tree */
            path: string;
            /** @description Only an error keeps a definition from being applied */
            severity: "error" | "warning" | "info" | (string & {});
        };
        Registration: {
            /**
             * Format: date-time
             * @description Time of the last look at the forge; null: never
             */
            checked_at: string | null;
            /** @description The events that the definition names */
            events: string[];
            /** @description Kind of the forge */
            forge: "github" | "gitlab" | "gitea" | (string & {});
            /** @description How it drifted, or why it is not registered; else empty */
            reason: string;
            /**
             * @description The repository
             * @example acme/shop
             */
            repository: string;
            /** @description pending: about to be made; drifted: changed by somebody at the forge, and repaired by the next apply; removing: the definition no longer has it */
            state: "pending" | "registered" | "drifted" | "failed" | "removing" | (string & {});
        };
        ReplayEventsResponse: {
            /**
             * Format: int64
             * @description Number of events
             */
            replayed: number;
        };
        ReplayResponse: {
            /** @description The new delivery */
            delivery_id: string;
            /** @description The original delivery */
            replay_of: string;
            /** @description The started runs */
            runs: components["schemas"]["DeliveryRun"][];
        };
        Repository: {
            /** @description Name */
            name: string;
            /** @description Its owner */
            owner: string;
            /** @description The same as name */
            repo: string;
        };
        RequestUsage: {
            /**
             * Format: int64
             * @description The part of input_tokens that was read from a cache
             */
            cached_input_tokens: number;
            /**
             * Format: double
             * @description US dollars, as the agent reports them or by the prices of the settings; absent when neither is known
             */
            inference_cost_usd?: number;
            /**
             * Format: int64
             * @description Tokens that went in, cached ones included
             */
            input_tokens: number;
            /** @description The part of each model */
            model_token_usage: components["schemas"]["ModelTokenUsage"][];
            /**
             * Format: int64
             * @description Tokens that came out
             */
            output_tokens: number;
            /**
             * Format: int64
             * @description input_tokens and output_tokens together
             */
            total_tokens: number;
        };
        Revision: {
            /** @description Name of the API key that made it */
            author: string;
            /**
             * Format: date-time
             * @description Time of creation
             */
            created_at: string;
            /**
             * Format: int64
             * @description Number of files written or deleted; 0 for a new secret
             */
            files_changed: number;
            /**
             * @description Identifier; later ones have higher numbers
             * @example r12
             */
            revision: string;
            /**
             * @description Summary of the edit
             * @example disable webhook alerts
             */
            subject: string;
        };
        RevisionWithDifference: {
            /** @description Name of the API key that made it */
            author: string;
            /**
             * Format: date-time
             * @description Time of creation
             */
            created_at: string;
            /** @description The changed files, by path */
            files: components["schemas"]["FileDifference"][];
            /**
             * Format: int64
             * @description Number of files written or deleted; 0 for a new secret
             */
            files_changed: number;
            /**
             * @description Identifier; later ones have higher numbers
             * @example r12
             */
            revision: string;
            /**
             * @description Summary of the edit
             * @example disable webhook alerts
             */
            subject: string;
        };
        Rollback: {
            /** @description Whether it serves now; false after a dry run */
            applied: boolean;
            /** @description The changes from the revision that was applied before */
            plan: components["schemas"]["Plan"];
            /** @description The earlier revision */
            revision: string;
        };
        RollbackRequest: {
            /** @description Allow a rollback that deletes all webhooks, or more than half of them */
            allow_prune?: boolean;
            /** @description Allow a renamed webhook, which gets a new URL */
            allow_rename?: boolean;
            /** @description Only plan, and change nothing */
            dry_run?: boolean;
            /** @description The revision, or its first 7 characters or more; absent: the applied one before the present */
            revision?: string;
        };
        RotateSecretRequest: {
            /** @description For auth_mode signature: the provider's new signing secret; absent: the server generates it */
            secret?: string;
            /** @description Rotate even if other webhooks use the secret */
            shared?: boolean;
        };
        RunAgentRequest: {
            /** @description An applied agent, whose prompt, model and settings apply */
            agent_identity_uid?: string | null;
            /** @description Files for the agent, at most 1 MiB each */
            attachments?: components["schemas"]["AttachmentRequest"][] | null;
            /** @description How to execute the run */
            config?: components["schemas"]["AmbientAgentConfig"];
            /** @description The conversation to continue */
            conversation_id?: string | null;
            /** @description At most 20 keys of 1 to 64 letters, digits, dots, underscores and dashes, with values of at most 256 bytes */
            metadata?: {
                [key: string]: string;
            } | null;
            /** @description The run that starts this one */
            parent_run_id?: string | null;
            /** @description The task of the agent; required without a skill or conversation */
            prompt?: string | null;
            /** @description Replaces config.skill_spec; also accepts repo:name and repo:path */
            skill?: string | null;
            /** @description Title for people; the first line of the prompt when absent */
            title?: string | null;
        };
        RunAgentResponse: {
            /** @description The run's ID */
            run_id: string;
            /** @description State of the run */
            state: components["schemas"]["RunState"];
            /** @description The same as run_id */
            task_id: string;
        };
        RunAnswerRequest: {
            /** @description The ID of a choice; approve and deny stand for the first one that allows and rejects, once before always */
            choice: string;
            /** @description Text for the conversation. An agent whose session has ended gets it too */
            message?: string;
            /** @description The question */
            question_id: string;
        };
        RunAnswerResponse: {
            /** @description live_session: the agent waits for the answer and goes on. handoff_execution: its session had ended, and the run is queued to resume it */
            outcome: "live_session" | "handoff_execution" | (string & {});
            /** @description The question */
            question_id: string;
            /** @description State of the run now */
            state: components["schemas"]["RunState"];
        };
        RunCreatorInfo: {
            /** @description Name */
            display_name: string;
            /** @description Kind */
            type: "user" | "service_account" | (string & {});
            /** @description Identifier */
            uid: string;
        };
        RunFollowupRequest: {
            /** @description The text; not blank */
            message: string;
        };
        RunFollowupResponse: {
            /** @description The message's ID */
            followup_id: string;
            /** @description queued_prompt: the message joined the prompt of the queued run. queue_pending: it follows when the execution ends. handoff_execution: the run had ended, and is queued again. live_session: the agent's living session gets it when its present turn ends */
            outcome: "queued_prompt" | "queue_pending" | "handoff_execution" | "live_session" | (string & {});
        };
        RunItem: {
            /** @description Skills that the agent advertised */
            advertised_skills: components["schemas"]["AdvertisedSkill"][];
            /** @description The resolved configuration */
            agent_config: components["schemas"]["AmbientAgentConfig"];
            /** @description Files and links that the run left. An artifact appears when its execution has ended */
            artifacts: components["schemas"]["ArtifactItem"][];
            /** @description The files that the agent gets */
            attachments: components["schemas"]["AttachmentInfo"][];
            /**
             * Format: date-time
             * @description Time of the request to cancel
             */
            cancel_requested_at?: string;
            /** @description The conversation that the run belongs to */
            conversation_id: string;
            /**
             * Format: date-time
             * @description Time of creation
             */
            created_at: string;
            /** @description Creator of the run */
            creator: components["schemas"]["RunCreatorInfo"];
            /** @description The deliveries of a run that stands for several, or that had later ones as follow-ups, oldest first: the newest 1000; not in lists */
            delivery_ids?: string[] | null;
            /** @description The worker that executes or executed the run */
            executor?: components["schemas"]["RunCreatorInfo"];
            /** @description The factory that the run belongs to */
            factory_uid?: string;
            /**
             * Format: date-time
             * @description Time of the end
             */
            finished_at: string | null;
            /** @description Whether runs of this kind can be cancelled */
            is_run_type_cancellable: boolean;
            /** @description Metadata from the creator; for a run that a delivery started, also automation_id, webhook_id and delivery_id */
            metadata: {
                [key: string]: string;
            };
            /** @description The run that started this one */
            parent_run_id?: string;
            /** @description Text that the agent executes */
            prompt: string;
            /** @description What the agent asks before it goes on; not in lists */
            questions?: components["schemas"]["RunQuestion"][] | null;
            /** @description Use of language models, summed over all executions and attempts. Absent until an agent reports it */
            request_usage?: components["schemas"]["RequestUsage"];
            /** @description The first ancestor of the run; the run itself if it has no parent */
            root_run_id: string;
            /**
             * @description The run's ID
             * @example 01960f3e-8a4b-7c3d-9e5f-0a1b2c3d4e5f
             */
            run_id: string;
            /**
             * @description Duration of the run, in ISO 8601
             * @example PT12.5S
             */
            run_time?: string;
            /** @description Identifier of the session */
            session_id: string;
            /** @description The run's page on the dashboard */
            session_link: string;
            /** @description Kind of creator */
            source: components["schemas"]["RunSourceType"];
            /**
             * Format: date-time
             * @description Start of the execution
             */
            started_at: string | null;
            /**
             * Format: date-time
             * @description When a run that waits for a time is ready
             */
            starts_at?: string;
            /** @description State of the run. FAILED: the agent's work failed; ERROR: the platform failed; BLOCKED: the agent waits for input */
            state: components["schemas"]["RunState"];
            /** @description Details of the state */
            status_message?: components["schemas"]["RunStatusMessage"];
            /** @description The full text given to the agent, envelope included; not in lists */
            submitted_prompt?: string;
            /** @description The newer run that this one gave way to */
            superseded_by?: string;
            /** @description The same as run_id */
            task_id: string;
            /** @description Text for people */
            title: string;
            /** @description Source of the run */
            trigger_url?: string;
            /**
             * Format: date-time
             * @description Time of the last change
             */
            updated_at: string;
            /** @description What keeps a queued run from workers: other runs of its automation, more deliveries of a burst, or its next attempt */
            waits_for?: "concurrency" | "debounce" | "retry" | "budget" | (string & {});
        };
        RunOutput: {
            /** @description Labels to add */
            add?: string[] | null;
            /**
             * Format: int64
             * @description How often the server began to perform it
             */
            attempts: number;
            /** @description Text, as it is sent. Commands to bots contain an invisible character */
            body?: string;
            /** @description The branch of a pull request */
            branch?: string;
            /**
             * Format: date-time
             * @description Time when it was asked for
             */
            created_at: string;
            /** @description Who approved or rejected the output */
            decided_by?: string;
            /** @description Verdict of a review */
            event?: string;
            /**
             * Format: int64
             * @description Number of the execution that asked for it, from 1
             */
            execution: number;
            /** @description Kind of output */
            kind: "pull_request" | "comment" | "label" | "review" | "status" | "reference" | (string & {});
            /**
             * Format: int64
             * @description The issue or pull request that it is about
             */
            number?: number;
            /** @description Its ID */
            output_uid: string;
            /** @description Why it is staged, refused or failed, or waits for another attempt */
            reason?: string;
            /** @description Labels to remove */
            remove?: string[] | null;
            /** @description owner/name */
            repository?: string;
            /** @description pending and doing: the server performs it. staged: a person has to agree. failed: for good, until somebody tries again. rejected: a person did not agree. refused: it was not allowed */
            state: "pending" | "doing" | "staged" | "done" | "failed" | "rejected" | "refused" | (string & {});
            /** @description Title of a pull request or reference */
            title?: string;
            /**
             * Format: date-time
             * @description Time of the last change
             */
            updated_at: string;
            /** @description Address of what was made */
            url?: string;
        };
        RunQuestion: {
            /**
             * Format: date-time
             * @description When it was asked
             */
            asked_at: string;
            /** @description The possible answers */
            choices: components["schemas"]["RunQuestionChoice"][];
            /** @description What it is about to do */
            input?: unknown;
            /** @description The question's ID */
            question_id: string;
            /** @description What the agent asks permission for */
            title: string;
        };
        RunQuestionChoice: {
            /** @description Value for choice of an answer */
            id: string;
            /** @description allow_once, allow_always, reject_once, reject_always, or another */
            kind: string;
            /** @description Text for people */
            name: string;
        };
        RunRepository: {
            /** @description A forge of the server's settings; the default one when absent */
            code_forge?: string | null;
            /** @description The name of the repository */
            name: string;
            /** @description The account or organisation */
            owner: string;
            /** @description A branch or tag; the default branch when absent */
            ref?: string | null;
        };
        /**
         * @description Source of a run: API, CLI, WEB_APP, CUSTOM_WEBHOOK (a webhook trigger), GITHUB_WEBHOOK, GITLAB_WEBHOOK, LINEAR, JIRA or SLACK (a trigger of the provider), SCHEDULED_AGENT, ORCHESTRATION, or another.
         * @example API
         * @example CLI
         * @example WEB_APP
         * @example CUSTOM_WEBHOOK
         * @example GITHUB_WEBHOOK
         * @example GITLAB_WEBHOOK
         * @example LINEAR
         * @example JIRA
         * @example SLACK
         * @example SCHEDULED_AGENT
         * @example ORCHESTRATION
         */
        RunSourceType: "API" | "CLI" | "WEB_APP" | "CUSTOM_WEBHOOK" | "GITHUB_WEBHOOK" | "GITLAB_WEBHOOK" | "LINEAR" | "JIRA" | "SLACK" | "SCHEDULED_AGENT" | "ORCHESTRATION" | (string & {});
        /** @description State of a run. FAILED: the agent's work failed, and the user must act; ERROR: the platform failed, and a retry may help; BLOCKED: the agent waits for input; PENDING is never produced. */
        RunState: "PENDING" | "QUEUED" | "CLAIMED" | "INPROGRESS" | "SUCCEEDED" | "FAILED" | "ERROR" | "BLOCKED" | "CANCELLED" | (string & {});
        RunStateEvent: {
            /**
             * Format: int64
             * @description Number of the attempt, from 1
             */
            attempt: number;
            /** @description Kind of failure */
            error_code?: string;
            /**
             * Format: int64
             * @description Number of the execution, from 1; a follow-up to an ended run starts a new one
             */
            execution: number;
            /** @description Text for people */
            message?: string;
            /** @description The run's ID */
            run_id: string;
            /** @description The new state */
            state: components["schemas"]["RunState"];
            /**
             * Format: date-time
             * @description Time of the change
             */
            timestamp: string;
        };
        RunStatusMessage: {
            /**
             * @description Kind of failure
             * @example agent_process_failed
             */
            error_code?: string;
            /** @description Text for people */
            message: string;
            /** @description Whether a retry may succeed */
            retryable: boolean;
        };
        RunTimeline: {
            /** @description The changes of the run's state, oldest first: at most the first 1,000 */
            events: components["schemas"]["RunTimelineEvent"][];
        };
        RunTimelineEvent: {
            /** @description What happened: the run was queued, claimed by a worker, begun, and ended as SUCCEEDED, FAILED, ERROR, BLOCKED or CANCELLED */
            event_type: "oz_run_created" | "oz_run_claimed" | "agent_started" | "oz_run_done" | "oz_run_failed" | "oz_run_errored" | "oz_run_blocked" | "oz_run_cancelled" | (string & {});
            /** @description The event's identifier */
            event_uuid: string;
            /**
             * Format: int64
             * @description Which execution, from 1
             */
            execution_id: number;
            /**
             * Format: date-time
             * @description When it happened
             */
            occurred_at: string;
            /** @description The change, as the stream of events has it */
            payload: components["schemas"]["RunStateEvent"];
            /** @description The run */
            run_id: string;
        };
        Schedule: {
            /** @description The configuration of its runs */
            agent_config: components["schemas"]["AmbientAgentConfig"];
            /** @description The agent that does its runs */
            agent_uid?: string;
            /** @description UID of the automation */
            automation_id: string;
            /**
             * Format: date-time
             * @description When the automation was first applied
             */
            created_at: string;
            /** @description schedule.cron, in UTC */
            cron_schedule: string;
            /** @description Whether the automation is enabled */
            enabled: boolean;
            /** @description The factory whose definition has it */
            factory_uid: string;
            /** @description When it fires */
            history: components["schemas"]["ScheduleHistory"];
            /**
             * @description Its identifier: the automation's UID and a hash of the cron expression and name
             * @example auto_01h455vb4pex5vsknk084sn02q.5d41402a
             */
            id: string;
            /** @description schedule.name, or the automation's name where it has none */
            name: string;
            /** @description The automation's prompt */
            prompt: string;
            /**
             * Format: date-time
             * @description When the automation last changed
             */
            updated_at: string;
        };
        ScheduleHistory: {
            /**
             * Format: date-time
             * @description When it fires next; null while the automation is disabled
             */
            next_run: string | null;
        };
        SchemaDocuments: {
            /** @description The JSON Schema (2020-12) of each kind of definition file. The schema of a Markdown file describes its front matter */
            documents: {
                [key: string]: unknown;
            };
            /**
             * @description The version
             * @example v1alpha1
             */
            schema_version: string;
        };
        SchemaVersion: {
            /** @description URL of its schemas */
            schema_url: string;
            /**
             * @description Its name, as in schemaVersion of factory.yaml
             * @example v1alpha1
             */
            schema_version: string;
        };
        SchemaVersions: {
            /** @description The version to write */
            current_version: string;
            /** @description All versions */
            versions: components["schemas"]["SchemaVersion"][];
        };
        Secret: {
            /**
             * Format: date-time
             * @description When it was created
             */
            created_at: string;
            /** @description The factory whose definition holds the secret, in a file of secrets/. Only this factory sees it. Absent for a secret of the team */
            factory_uid?: string;
            /** @description Name, as in secretName of a webhook */
            name: string;
            /** @description The secret has no value yet: its webhooks answer 401 */
            pending: boolean;
            /** @description A source uses the secret, so definitions may not name it */
            reserved: boolean;
            /** @description The revision of the definition that brought the value; absent for a secret of the team */
            revision?: string;
            /**
             * Format: date-time
             * @description Time of the last change of the value
             */
            updated_at: string;
            /**
             * @description Users of the secret: webhooks, sources, and agents and automations that grant it to runs. A secret in use cannot be deleted
             * @example [
             *       "webhook ci of factory default"
             *     ]
             */
            used_by: string[];
            /**
             * Format: int64
             * @description Version of the value; webhooks use the version that was current at their last apply
             */
            version: number;
            /** @description After a new value: webhooks that cannot use it, and factories with a secret of this name in their definition */
            warnings?: string[] | null;
            /** @description UIDs of the webhooks that use it */
            webhooks: string[];
        };
        SecretRef: {
            /** @description Name of the secret */
            name: string;
        };
        SelectedWebhook: {
            /** @description Name; empty if no webhook has that UID */
            name: string;
            /** @description Whether its deliveries start the automation */
            state: "enabled" | "disabled" | "deleted" | "unknown" | (string & {});
            /** @description UID, as in the automation */
            uid: string;
        };
        SetSecretRequest: {
            /** @description true: the provider has not issued the value yet */
            pending?: boolean;
            /** @description The value; required unless pending is true */
            value?: string;
        };
        SkippedDelivery: {
            /**
             * @description Why
             * @example skipped: concurrency
             */
            decision: string;
            /** @description Identifier of the delivery */
            delivery_id: string;
            /**
             * Format: date-time
             * @description Time of arrival
             */
            received_at: string;
            /** @description The webhook */
            webhook_id: string;
        };
        Sync: {
            /** @description Author of the commit, or name of the API key that made the edit */
            author: string;
            /**
             * Format: date-time
             * @description Time of the commit or edit
             */
            committed_at: string | null;
            /** @description Number of changed resources */
            counts: components["schemas"]["SyncCounts"];
            /**
             * Format: date-time
             * @description Time of the end
             */
            finished_at: string;
            /** @description Reason why it was refused or failed, in one line; else empty */
            message: string;
            /** @description Outcome: refused if the definition has errors, failed if the source is unreadable, suspended if it is valid and the factory was rolled back */
            outcome: "applied" | "refused" | "unchanged" | "failed" | "suspended" | (string & {});
            /** @description Problems in the definition */
            problems: components["schemas"]["Problem"][];
            /** @description A git commit, sha256:… of a directory's content, or r12 of a managed factory; empty if the source is unreadable */
            revision: string;
            /** @description Name and key of the commit's signer, if the source verifies signatures; else empty */
            signer: string;
            /** @description Source of the definition */
            source: components["schemas"]["FactorySource"];
            /**
             * Format: date-time
             * @description Time at which it began
             */
            started_at: string;
            /** @description First line of the commit message, or summary of the edit */
            subject: string;
        };
        SyncCounts: {
            /**
             * Format: int64
             * @description Created resources
             */
            created: number;
            /**
             * Format: int64
             * @description Deleted resources
             */
            deleted: number;
            /**
             * Format: int64
             * @description Webhooks with a new value of their secret
             */
            secrets: number;
            /**
             * Format: int64
             * @description Unchanged resources
             */
            unchanged: number;
            /**
             * Format: int64
             * @description Updated resources
             */
            updated: number;
        };
        SyncRequest: {
            /** @description Allow an apply that deletes all webhooks, or more than half of them */
            allow_prune?: boolean;
            /** @description Allow a renamed webhook, which gets a new URL */
            allow_rename?: boolean;
            /** @description The revision to apply, or its first 7 characters or more; 409 if the source has another one. If absent, the permissions count for the revision that was refused last, and for no other */
            revision?: string;
        };
        TriggerVerdict: {
            /**
             * @description Name of the event
             * @example pull_request_opened
             */
            event: string;
            /** @description Whether the delivery is the event and passes the filter, and why not */
            explanation: components["schemas"]["Explanation"];
            /**
             * @description Provider of the event
             * @example github
             */
            provider: string;
        };
        UndecidedDelivery: {
            /**
             * Format: int64
             * @description How often the server has asked the forge
             */
            attempts: number;
            /** @description Identifier of the delivery */
            delivery_id: string;
            /**
             * Format: date-time
             * @description Time of arrival
             */
            received_at: string;
            /** @description The webhook */
            webhook_id: string;
        };
        UnregisteredWebhook: {
            /** @description The reason; empty before the first attempt */
            reason: string;
            /**
             * @description The repository at the forge
             * @example acme/shop
             */
            repository: string;
            /** @description As in the webhook's registration */
            state: "pending" | "drifted" | "failed" | "removing" | (string & {});
            /** @description Name of the webhook */
            webhook: string;
        };
        UpdateWebhookRequest: {
            /** @description How senders authenticate; removes a signature_scheme that does not fit */
            auth_mode?: "token" | "url_token" | "signature" | (string & {});
            /**
             * Format: int64
             * @description The delivery budget of each sender; 0 as the server has it
             */
            deliveries_per_minute?: number;
            /** @description Header with the sender's own event ID; empty for none */
            delivery_id_header?: string;
            /** @description How long the hash of a body counts as an identity, 1m to 30d; empty for ever */
            duplicate_window?: string;
            /** @description Whether the webhook accepts deliveries */
            enabled?: boolean;
            /** @description Whether the webhook answers the provider's set-up probes */
            handshake?: boolean;
            /** @description A new name; UID and URL stay */
            name?: string;
            /** @description The team secret that holds the credential */
            secret_name?: string;
            /** @description The provider's signing scheme; empty for none */
            signature_scheme?: string;
        };
        ValidateFilesRequest: {
            /** @description The whole tree */
            files: components["schemas"]["DefinitionFile"][];
        };
        ValidateFilesResponse: {
            /** @description Always empty: no name in a tree is resolved later */
            deferred_resolutions: components["schemas"]["DeferredResolution"][];
            /** @description Errors and warnings, by file and place */
            diagnostics: components["schemas"]["Problem"][];
            /**
             * Format: int64
             * @description Number of omitted diagnostics
             */
            diagnostics_omitted?: number;
            /** @description Notes, which do not make a tree invalid, by file and place */
            infos: components["schemas"]["Problem"][];
            /** @description The version of the rules */
            schema_version: string;
            /** @description Rules that were not checked because they need a server */
            state_dependent_checks_not_run: string[];
            /** @description Whether the tree has no errors */
            valid: boolean;
            /** @description The checks that ran */
            validation_scope: components["schemas"]["ValidationScope"];
        };
        ValidationScope: {
            /** @description Parsing of the files */
            parser: "checked" | "not_run" | (string & {});
            /** @description Rules that need a server */
            state_dependent: "not_checked" | (string & {});
            /** @description Rules that need no server */
            state_independent: "checked" | "not_run" | (string & {});
        };
        Webhook: {
            /** @description How senders authenticate */
            auth_mode: "token" | "url_token" | "signature" | (string & {});
            /** @description Number of logged requests by outcome */
            counts: components["schemas"]["DeliveryCounts"];
            /**
             * Format: date-time
             * @description Time of the first apply
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Time of deletion; null for a live webhook
             */
            deleted_at: string | null;
            /**
             * Format: int64
             * @description The delivery budget of each sender; absent as the server has it
             */
            deliveries_per_minute?: number;
            /** @description Header with the sender's own event ID, or empty */
            delivery_id_header: string;
            /**
             * @description How long the hash of a body counts as an identity; absent for ever
             * @example 10m
             */
            duplicate_window?: string;
            /** @description Whether the webhook accepts deliveries; a disabled one answers 404 */
            enabled: boolean;
            /**
             * @description The definition file, relative to the root of the definition
             * @example webhooks/alerts.yaml
             */
            file: string;
            /** @description Whether the webhook answers the provider's set-up probes */
            handshake: boolean;
            /**
             * @description URL for senders, with {token} in place of a URL token
             * @example https://hooks.example.com/webhooks/w/wh_01h455vb4pex5vsknk084sn02q
             */
            ingress_url: string;
            /**
             * Format: int64
             * @description Line of the webhook's first key in the file, from 1
             */
            line: number;
            /** @description Name, as its file */
            name: string;
            /**
             * Format: int64
             * @description How many requests of the last 24 hours got 429: they are not in the log
             */
            refused_by_budget: number;
            /**
             * Format: int64
             * @description How many of the last 24 hours got 404 because the webhook was disabled
             */
            refused_while_disabled: number;
            /** @description The webhook that the server makes at a forge; absent: none */
            registration?: components["schemas"]["Registration"];
            /** @description The team secret that holds the credential */
            secret_name: string;
            /** @description Whether the secret has no value yet; every request is then 401 */
            secret_pending: boolean;
            /** @description Whether a newer value of the secret waits for the next apply */
            secret_stale: boolean;
            /**
             * Format: int64
             * @description Version of the secret in use; 0 for a deleted webhook
             */
            secret_version: number;
            /** @description The provider's signing scheme, as in the file; empty unless auth_mode is signature */
            signature_scheme: string;
            /**
             * @description Identifier, part of the ingress URL
             * @example wh_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /**
             * Format: date-time
             * @description Time of the last change
             */
            updated_at: string;
        };
        WebhookWithSecret: {
            /** @description How senders authenticate */
            auth_mode: "token" | "url_token" | "signature" | (string & {});
            /** @description Number of logged requests by outcome */
            counts: components["schemas"]["DeliveryCounts"];
            /**
             * Format: date-time
             * @description Time of the first apply
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Time of deletion; null for a live webhook
             */
            deleted_at: string | null;
            /**
             * Format: int64
             * @description The delivery budget of each sender; absent as the server has it
             */
            deliveries_per_minute?: number;
            /** @description Header with the sender's own event ID, or empty */
            delivery_id_header: string;
            /**
             * @description How long the hash of a body counts as an identity; absent for ever
             * @example 10m
             */
            duplicate_window?: string;
            /** @description Whether the webhook accepts deliveries; a disabled one answers 404 */
            enabled: boolean;
            /**
             * @description The definition file, relative to the root of the definition
             * @example webhooks/alerts.yaml
             */
            file: string;
            /** @description Whether the webhook answers the provider's set-up probes */
            handshake: boolean;
            /**
             * @description URL for senders, with {token} in place of a URL token
             * @example https://hooks.example.com/webhooks/w/wh_01h455vb4pex5vsknk084sn02q
             */
            ingress_url: string;
            /**
             * Format: int64
             * @description Line of the webhook's first key in the file, from 1
             */
            line: number;
            /** @description Name, as its file */
            name: string;
            /**
             * Format: int64
             * @description How many requests of the last 24 hours got 429: they are not in the log
             */
            refused_by_budget: number;
            /**
             * Format: int64
             * @description How many of the last 24 hours got 404 because the webhook was disabled
             */
            refused_while_disabled: number;
            /** @description The webhook that the server makes at a forge; absent: none */
            registration?: components["schemas"]["Registration"];
            /** @description The secret; no other answer contains it. A URL token is in ingress_url. Absent for an existing or pending secret */
            secret?: string;
            /** @description The team secret that holds the credential */
            secret_name: string;
            /** @description Whether the secret has no value yet; every request is then 401 */
            secret_pending: boolean;
            /** @description Whether a newer value of the secret waits for the next apply */
            secret_stale: boolean;
            /**
             * Format: int64
             * @description Version of the secret in use; 0 for a deleted webhook
             */
            secret_version: number;
            /** @description The provider's signing scheme, as in the file; empty unless auth_mode is signature */
            signature_scheme: string;
            /**
             * @description Identifier, part of the ingress URL
             * @example wh_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /**
             * Format: date-time
             * @description Time of the last change
             */
            updated_at: string;
        };
        Worker: {
            /**
             * Format: int64
             * @description Number of runs that it executes
             */
            busy: number;
            /** @description Its harnesses */
            harnesses: string[];
            /** @description UID of its API key; empty for a worker inside a server */
            key_uid: string;
            /**
             * Format: date-time
             * @description Time of its last report; it reports every 10 seconds
             */
            last_seen_at: string;
            /** @description Whether it reported within the last 30 seconds */
            live: boolean;
            /** @description Name; by default that of its host */
            name: string;
            /** @description IDs of the runs that it executes */
            runs: string[];
            /**
             * Format: int64
             * @description Number of runs that it can execute at once
             */
            slots: number;
            /**
             * @description Identifier of the process
             * @example wrk_2x4y6z8a0b1c3d5e7f9g1h3j5k
             */
            uid: string;
            /** @description Version of its program */
            version: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listAgentSkills: {
        parameters: {
            query?: {
                /** @description Only skills of this repository: owner/name */
                repo?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListAgentSkillsResponse"];
                };
            };
        };
    };
    getArtifact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The artifact's UID */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Artifact"];
                };
            };
        };
    };
    downloadArtifact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The artifact's UID */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    getConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The conversation's ID */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
        };
    };
    createConversationFollowup: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeats with the same key and body within 24 hours get the first answer, and send nothing */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The conversation's ID */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunFollowupRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationFollowupResponse"];
                };
            };
        };
    };
    getConversationTranscript: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The conversation's ID */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    "Cache-Control"?: string;
                    "Content-Disposition"?: string;
                    "Content-Security-Policy"?: string;
                    "Content-Type"?: string;
                    "X-Content-Type-Options"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    listEnvironments: {
        parameters: {
            query?: {
                /** @description What to order by: the last updated first, or by name */
                sort_by?: "last_updated" | "name" | (string & {});
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListEnvironmentsResponse"];
                };
            };
        };
    };
    listAgentIdentities: {
        parameters: {
            query?: {
                /** @description Only agents of this factory */
                factory_uid?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListAgentIdentitiesResponse"];
                };
            };
        };
    };
    getAgentIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the agent */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentIdentity"];
                };
            };
        };
    };
    listModels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListModelsResponse"];
                };
            };
        };
    };
    listRuns: {
        parameters: {
            query?: {
                /** @description Only runs with these values in their metadata: metadata[key]=value */
                metadata?: {
                    [key: string]: string;
                };
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
                /** @description Sort key */
                sort_by?: "updated_at" | "created_at" | "title" | "agent" | (string & {});
                /** @description Sort direction */
                sort_order?: "desc" | "asc" | (string & {});
                /** @description Only runs in one of these states */
                state?: ("QUEUED" | "PENDING" | "CLAIMED" | "INPROGRESS" | "SUCCEEDED" | "FAILED" | "ERROR" | "BLOCKED" | "CANCELLED" | (string & {})) | ("QUEUED" | "PENDING" | "CLAIMED" | "INPROGRESS" | "SUCCEEDED" | "FAILED" | "ERROR" | "BLOCKED" | "CANCELLED" | (string & {}))[];
                /** @description Only runs whose state is one of these kinds */
                task_status?: ("running" | "failed" | "blocked" | "cancelled" | "complete" | (string & {})) | ("running" | "failed" | "blocked" | "cancelled" | "complete" | (string & {}))[];
                /** @description Only runs of one of these sources (RunSourceType), in any case */
                source?: string | string[];
                /** @description Only runs with this config name */
                name?: string;
                /** @description Only runs of this language model */
                model_id?: string;
                /** @description Only runs created by the holder of this UID */
                creator?: string;
                /** @description Only runs that the worker of this UID executes or executed */
                executor?: string;
                /** @description Only runs of this environment */
                environment_id?: string;
                /** @description Only runs of this skill */
                skill?: string;
                /** @description The same as skill */
                skill_spec?: string;
                /** @description Only runs created after this time (RFC 3339; UTC without a zone) */
                created_after?: string | Date;
                /** @description Only runs created before this time (RFC 3339; UTC without a zone) */
                created_before?: string | Date;
                /** @description Only runs changed after this time (RFC 3339; UTC without a zone) */
                updated_after?: string | Date;
                /** @description Only runs changed before this time (RFC 3339; UTC without a zone) */
                updated_before?: string | Date;
                /** @description Only runs of one of these factories */
                factory_uid?: string | string[];
                /** @description Only runs of factories */
                factory_only?: boolean;
                /** @description Only runs of this automation */
                automation_id?: string;
                /** @description Only runs that a delivery to this webhook started */
                webhook_id?: string;
                /** @description Only runs that this delivery started */
                delivery_id?: string;
                /** @description Only descendants of this run */
                ancestor_run_id?: string;
                /** @description Only runs with this text in their title or prompt, in any case, or with this ID */
                q?: string;
                /** @description Only queued runs that no worker may take yet: they wait for others of their automation, for the end of a burst of deliveries, or for their next attempt */
                waiting?: boolean;
                /** @description LOCAL matches no run, REMOTE every run */
                execution_location?: "LOCAL" | "REMOTE" | (string & {});
                /** @description Only runs that this schedule started. Schedules without a name share those of their automation */
                schedule_id?: string;
                /** @description Only runs that left an artifact of this type */
                artifact_type?: "FILE" | "SCREENSHOT" | "PLAN" | "PULL_REQUEST" | "EXTERNAL_REFERENCE" | (string & {});
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListRunsResponse"];
                };
            };
        };
    };
    createRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeats with the same key and body within 24 hours get the first answer */
                "Idempotency-Key"?: string;
                /** @description Origin of the request: cli or web. It sets the run's source */
                "X-Millwright-Client"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunAgentRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunAgentResponse"];
                };
            };
        };
    };
    getRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunItem"];
                };
            };
        };
    };
    answerQuestion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunAnswerRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunAnswerResponse"];
                };
            };
        };
    };
    getAttachment: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
                /** @description Name of the file */
                fileName: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    "Cache-Control"?: string;
                    "Content-Disposition"?: string;
                    "Content-Security-Policy"?: string;
                    "Content-Type"?: string;
                    "X-Content-Type-Options"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    cancelRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": string;
                };
            };
        };
    };
    getRunConversation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Conversation"];
                };
            };
        };
    };
    streamRunEvents: {
        parameters: {
            query?: never;
            header?: {
                /** @description ID of the last received event; the stream continues after it */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description The run has ended, and the client has every event */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    createFollowup: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeats with the same key and body within 24 hours get the first answer, and send nothing */
                "Idempotency-Key"?: string;
            };
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunFollowupRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunFollowupResponse"];
                };
            };
        };
    };
    listRunOutputs: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListOutputsResponse"];
                };
            };
        };
    };
    openPullRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["OpenPullRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunOutput"];
                };
            };
        };
    };
    approveRunOutput: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
                /** @description The output's ID */
                outputUid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunOutput"];
                };
            };
        };
    };
    rejectRunOutput: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
                /** @description The output's ID */
                outputUid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunOutput"];
                };
            };
        };
    };
    retryRunOutput: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
                /** @description The output's ID */
                outputUid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunOutput"];
                };
            };
        };
    };
    retryRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeats with the same key and run within 24 hours get the first answer, and start nothing */
                "Idempotency-Key"?: string;
                /** @description Origin of the request: cli or web. It sets the run's source */
                "X-Millwright-Client"?: string;
            };
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunAgentResponse"];
                };
            };
        };
    };
    getRunTimeline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunTimeline"];
                };
            };
        };
    };
    getRunTranscript: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's ID */
                runId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file */
            200: {
                headers: {
                    "Cache-Control"?: string;
                    "Content-Disposition"?: string;
                    "Content-Security-Policy"?: string;
                    "Content-Type"?: string;
                    "X-Content-Type-Options"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
        };
    };
    listSchedules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListSchedulesResponse"];
                };
            };
        };
    };
    getSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The schedule's ID */
                scheduleId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
        };
    };
    listBundledSkills: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BundledSkills"];
                };
            };
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
                /** @description Name or UID of the actor */
                actor?: string;
                /** @description An action such as webhook.disable, or all of a kind such as webhook */
                action?: string;
                /** @description UID of the factory */
                factory_uid?: string;
                /** @description Only changes at this time or later */
                after?: string | Date;
                /** @description Only changes before this time */
                before?: string | Date;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListAuditResponse"];
                };
            };
        };
    };
    listFactories: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
                /** @description Part of the name or alias, in any case */
                search?: string;
                /** @description Include detached factories */
                include_detached?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListFactoriesResponse"];
                };
            };
        };
    };
    listSchemas: {
        parameters: {
            query?: never;
            header?: {
                /** @description ETag of the client's copy */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Cache-Control"?: string;
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SchemaVersions"];
                };
            };
        };
    };
    getSchemas: {
        parameters: {
            query?: never;
            header?: {
                /** @description ETag of the client's copy */
                "If-None-Match"?: string;
            };
            path: {
                /** @description The version */
                version: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Cache-Control"?: string;
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SchemaDocuments"];
                };
            };
        };
    };
    getSchema: {
        parameters: {
            query?: never;
            header?: {
                /** @description ETag of the client's copy */
                "If-None-Match"?: string;
            };
            path: {
                /** @description The version */
                version: string;
                /** @description The kind of file, with or without .schema.json */
                document: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "Cache-Control"?: string;
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
        };
    };
    validateFactoryFiles: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ValidateFilesRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ValidateFilesResponse"];
                };
            };
        };
    };
    getFactory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Factory"];
                };
            };
        };
    };
    listApplied: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListAppliedResponse"];
                };
            };
        };
    };
    listAutomations: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListAutomationsResponse"];
                };
            };
        };
    };
    getAutomationFlow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Name or UID of the automation */
                automation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AutomationFlow"];
                };
            };
        };
    };
    dropWaitingRuns: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Name or UID of the automation */
                automation: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DroppedRuns"];
                };
            };
        };
    };
    listEvents: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
                /** @description Only events in this state */
                state?: "" | "pending" | "sent" | "dead" | "dropped" | (string & {});
                /** @description Only events of the notification of this name */
                notification?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListEventsResponse"];
                };
            };
        };
    };
    getEvent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Identifier of the event */
                event_uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventDetail"];
                };
            };
        };
    };
    replayEvent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Identifier of the event */
                event_uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"];
                };
            };
        };
    };
    listFiles: {
        parameters: {
            query?: {
                /** @description ID of the revision; absent for the newest */
                revision?: string;
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListFilesResponse"];
                };
            };
        };
    };
    importFiles: {
        parameters: {
            query?: {
                /** @description Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision */
                base_revision?: string;
                /** @description Allow an edit that deletes all webhooks, or more than half of them */
                allow_prune?: boolean;
                /** @description Allow a renamed webhook, which gets a new URL */
                allow_rename?: boolean;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ImportFilesRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sync"];
                };
            };
        };
    };
    exportFiles: {
        parameters: {
            query?: {
                /** @description ID of the revision; absent for the newest */
                revision?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The files */
            200: {
                headers: {
                    "Cache-Control"?: string;
                    "Content-Disposition"?: string;
                    "Content-Type"?: string;
                    "X-Content-Type-Options"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/x-tar": string;
                };
            };
        };
    };
    importTar: {
        parameters: {
            query?: {
                /** @description Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision */
                base_revision?: string;
                /** @description Allow an edit that deletes all webhooks, or more than half of them */
                allow_prune?: boolean;
                /** @description Allow a renamed webhook, which gets a new URL */
                allow_rename?: boolean;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/x-tar": string;
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sync"];
                };
            };
        };
    };
    getFile: {
        parameters: {
            query?: {
                /** @description ID of the revision; absent for the newest */
                revision?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Path of the file, relative to the root of the definition; slashes need no escaping */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileContent"];
                };
            };
        };
    };
    putFile: {
        parameters: {
            query?: {
                /** @description Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision */
                base_revision?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Path of the file, relative to the root of the definition; slashes need no escaping */
                path: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditFileRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sync"];
                };
            };
        };
    };
    deleteFile: {
        parameters: {
            query?: {
                /** @description Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision */
                base_revision?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Path of the file, relative to the root of the definition; slashes need no escaping */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sync"];
                };
            };
        };
    };
    testFilter: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FilterTestRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FilterTestResponse"];
                };
            };
        };
    };
    listNotifications: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListNotificationsResponse"];
                };
            };
        };
    };
    replayDeadEvents: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Name of the notification */
                notification: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplayEventsResponse"];
                };
            };
        };
    };
    testNotification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Name of the notification */
                notification: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Event"];
                };
            };
        };
    };
    planFactory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["PlanRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
        };
    };
    notifyPush: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": string;
            };
        };
        responses: {
            /** @description No Content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    resumeFactory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Factory"];
                };
            };
        };
    };
    listRevisions: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListRevisionsResponse"];
                };
            };
        };
    };
    getRevision: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description ID of the revision */
                revision: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RevisionWithDifference"];
                };
            };
        };
    };
    restoreRevision: {
        parameters: {
            query?: {
                /** @description Revision on which the edit is based: 409 if the file has changed since. Absent: the edit applies to the newest revision */
                base_revision?: string;
                /** @description Allow an edit that deletes all webhooks, or more than half of them */
                allow_prune?: boolean;
                /** @description Allow a renamed webhook, which gets a new URL */
                allow_rename?: boolean;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description ID of the revision */
                revision: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sync"];
                };
            };
        };
    };
    rollbackFactory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RollbackRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rollback"];
                };
            };
        };
    };
    createFactoryRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description Repeats with the same key and body within 24 hours get the first answer */
                "Idempotency-Key"?: string;
                /** @description Origin of the request: cli or web. It sets the run's source */
                "X-Millwright-Client"?: string;
            };
            path: {
                /** @description The factory's UID */
                uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FactoryRunRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactoryRunResponse"];
                };
            };
        };
    };
    syncFactory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SyncRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Sync"];
                };
            };
        };
    };
    listSyncs: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListSyncsResponse"];
                };
            };
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
                /** @description Include deleted ones */
                include_deleted?: boolean;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListWebhooksResponse"];
                };
            };
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateWebhookRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    deleteWebhook: {
        parameters: {
            query?: {
                /** @description Also delete its secret, unless something else uses it */
                delete_secret?: boolean;
                /** @description A webhook of this name within 30 days gets the UID and URL back; without this the URL ends for good */
                restorable?: boolean;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No Content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateWebhookRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
                /** @description Only those with this outcome */
                outcome?: "accepted" | "duplicate" | "rejected_auth" | "rejected_invalid_json" | "rejected_too_large" | "handshake" | (string & {});
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListDeliveriesResponse"];
                };
            };
        };
    };
    streamDeliveries: {
        parameters: {
            query?: never;
            header?: {
                /** @description ID of the last received event; the stream continues after it */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    getDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
                /** @description Identifier of the delivery */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryDetail"];
                };
            };
        };
    };
    replayDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
                /** @description Identifier of the delivery */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplayResponse"];
                };
            };
        };
    };
    getDeliveryRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
                /** @description Identifier of the delivery */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request */
            200: {
                headers: {
                    "Cache-Control"?: string;
                    "Content-Disposition"?: string;
                    "Content-Security-Policy"?: string;
                    "Content-Type"?: string;
                    "X-Content-Type-Options"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "message/http": string;
                };
            };
        };
    };
    rotateSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description UID of the webhook */
                webhook_uid: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RotateSecretRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListAPIKeysResponse"];
                };
            };
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAPIKeyRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedAPIKey"];
                };
            };
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description UID of the key */
                uid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No Content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listSecrets: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListSecretsResponse"];
                };
            };
        };
    };
    setSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the secret */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SetSecretRequest"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Secret"];
                };
            };
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the secret */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No Content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listWorkers: {
        parameters: {
            query?: {
                /** @description Maximum number of items */
                limit?: number;
                /** @description next_cursor of the previous page; absent for the first page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListWorkersResponse"];
                };
            };
        };
    };
}
