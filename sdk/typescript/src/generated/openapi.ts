// Made by scripts/generate.mjs from api/openapi.yaml: do not edit.

export interface paths {
    "/api/v1/agent/conversations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a conversation
         * @description All runs that belong to it, oldest first. Of more than 16 MiB the newest is shown, and an event block named left_out stands for what was said before. Needs a key of role viewer or above.
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
    "/api/v1/agent/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List runs
         * @description Conditions on different fields must all hold; the values of a repeated parameter are alternatives. metadata[key]=value selects runs by their metadata. No run is shown twice or skipped because others are added meanwhile. The server looks at a bounded number of runs for a page: it may have fewer than limit, or none, and the list go on while has_next_page is true. Needs a key of role viewer or above.
         */
        get: operations["listRuns"];
        put?: never;
        /**
         * Start a run
         * @description The run is queued. An Idempotency-Key header makes a repeat return the first answer for 24 hours. Needs a key of role runner or above.
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
         * @description In full, with the prompt that was given to the agent. Needs a key of role viewer or above.
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
    "/api/v1/agent/runs/{runId}/attachments/{fileName}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download a file of a run
         * @description Others wrote it: do not trust it. Needs a key of role viewer or above.
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
         * @description A queued run is cancelled at once. A run in progress is told to stop, and killed after 5 seconds; the answer comes when it is CANCELLED, or after 10 seconds, with cancel_requested_at recorded. The answer is the run's ID. Needs a key of role runner or above.
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
         * @description Only what was said in this run. Of more than 16 MiB the newest is shown, and an event block named left_out stands for what was said before. Needs a key of role viewer or above.
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
         * @description Server-sent events: state with a RunStateEvent, message with a ConversationMessage. The stream ends when the run has ended; a client that reconnects then is answered 204. Needs a key of role viewer or above.
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
         * @description A run that has ended is queued again, as a new execution of the same run. An Idempotency-Key header makes a repeat return the first answer for 24 hours. Needs a key of role runner or above.
         */
        post: operations["createFollowup"];
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
         * @description For grouping the use of skills across conversations. It is not an availability manifest: what a run had is its advertised_skills. Needs a key of role viewer or above.
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
    "/api/v1/factory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the factories
         * @description Needs a key of role viewer or above.
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
         * Say what is wrong with a definition tree
         * @description Never looks at state. Needs no key; without one it takes 2 MiB, and 30 requests a minute from a sender.
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
         * @description Needs a key of role viewer or above.
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
    "/api/v1/factory/{uid}/automations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a factory's automations, what they select, and why they do not fire
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
    "/api/v1/factory/{uid}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the files of a definition
         * @description Only for a factory whose definition the server itself holds. Needs a key of role viewer or above.
         */
        get: operations["listFiles"];
        /**
         * Replace the definition by a tree of files
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
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
         * Export the definition as a tar of its files, which a git or directory source takes as it is
         * @description Only for a factory whose definition the server itself holds. Needs a key of role admin or above.
         */
        get: operations["exportFiles"];
        /**
         * Replace the definition by the files of a tar
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
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
         * @description Only for a factory whose definition the server itself holds. Needs a key of role admin or above.
         */
        get: operations["getFile"];
        /**
         * Write a definition file
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
         */
        put: operations["putFile"];
        post?: never;
        /**
         * Delete a definition file
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
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
         * Test a payload filter with a stored delivery or a payload
         * @description Needs a key of role viewer or above.
         */
        post: operations["testFilter"];
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
         * Say what applying a tree to a factory would change, or why it would be refused; changes nothing
         * @description Without files it plans the current head of the factory's source, which needs a key of role runner. A key holder can learn from a plan whether a team secret of some name exists. Needs a key of role viewer or above.
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
         * Take a git host's push notice, which wakes the factory's source
         * @description Needs no key: the notice is signed by the git host with the team secret that the settings of the source name.
         */
        post: operations["notifyPush"];
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
         * @description Only for a factory whose definition the server itself holds. The last 200 are kept, fewer when their files are large. Needs a key of role viewer or above.
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
         * Get a revision, with what it changed
         * @description Only for a factory whose definition the server itself holds. The last 200 are kept, fewer when their files are large. Needs a key of role admin or above.
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
         * Make a new revision with the files of an earlier one
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
         */
        post: operations["restoreRevision"];
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
         * @description The factory's foreman agent does it, where the definition has one: its prompt becomes the base prompt. Needs a key of role runner or above.
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
         * Apply the head of a factory's source now, and wait until it is applied or refused
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
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
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
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
         */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Change a webhook
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
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
         * @description Server-sent events: first listening, with no data, then delivery with a Delivery for each that is accepted from then on. While a stream of a key of role runner is open, and for a minute after, the headers of deliveries are kept for getDeliveryRequest. A stream that is resumed may repeat deliveries of the last half minute: tell them apart by their IDs. Needs a key of role viewer or above.
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
         * Get a delivery with its payload, and what each automation made of it
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
         * Start the matching runs of a delivery again, as a new delivery
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
         * @description The request in the form of HTTP/1.1: its line, the headers where they were kept, an empty line, and the body byte for byte. Credentials are left out, and a token in the URL is shown as {token}; signatures are not: whoever reads one can send the request again under another ID. Others wrote it: do not trust it. Needs a key of role runner or above.
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
         * Give a webhook a new secret; the old one stops working at once
         * @description Only for a factory whose definition the server itself holds; for others the answer names the file to edit. It is in force when the answer comes; a definition that would be refused changes nothing, and errors says why. Needs a key of role admin or above.
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
         * Make an API key
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
         * Revoke an API key, at once
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
         * List the team's secrets: names, versions and users, never values
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
         * Create a secret, or give it a new value, which webhooks pick up when their definition next applies
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
             * @description When it was made
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it stops working; null for never
             */
            expires_at: string | null;
            /** @description What it is for */
            name: string;
            /**
             * Format: date-time
             * @description When it was revoked; null if it was not
             */
            revoked_at: string | null;
            /** @description viewer reads, runner also creates and steers runs, admin may do everything, worker executes runs and has no API */
            role: "viewer" | "runner" | "admin" | "worker" | (string & {});
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
            /** @description Path by which it is resolved */
            skill_path?: string;
        };
        AmbientAgentConfig: {
            /** @description Shapes the agent's behaviour */
            base_prompt?: string | null;
            /** @description The environment */
            environment_id?: string | null;
            /** @description What executes the run */
            harness?: components["schemas"]["Harness"];
            /**
             * Format: int64
             * @description How long a session may be idle
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
            /** @description The runner */
            runner_id?: string | null;
            /** @description Skill as base prompt: owner/repo:skill-name or owner/repo:path/to/SKILL.md */
            skill_spec?: string | null;
            /** @description Where to execute */
            worker_host?: string | null;
        };
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
        Automation: {
            /** @description The agent it names, or empty */
            agent: string;
            /** @description Whether it may start runs */
            enabled: boolean;
            /**
             * @description The definition file, relative to the root of the definition
             * @example automations/ci/automation.md
             */
            file: string;
            /** @description Whether anything can start it just now */
            fires: boolean;
            /**
             * Format: int64
             * @description The line of the file on which its first key stands, from 1
             */
            line: number;
            /** @description Its name: that of its directory */
            name: string;
            /** @description What starts it */
            triggers: components["schemas"]["AutomationTrigger"][];
            /**
             * @description Identifier
             * @example auto_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /** @description The webhooks that its triggers select */
            webhooks: components["schemas"]["SelectedWebhook"][];
            /** @description Why it does not fire, or not for all that it selects; empty when there is nothing to say */
            why_not: string[];
        };
        AutomationTrigger: {
            /** @description Of a schedule trigger: when, in UTC */
            cron?: string;
            /**
             * @description What happened
             * @example received
             */
            event: string;
            /** @description Of any other trigger: its filter */
            filter?: unknown;
            /** @description Of a webhook trigger: its payload filter */
            payload?: unknown;
            /**
             * @description Who knows of the event
             * @example webhook
             */
            provider: string;
            /** @description Whether this server fires such triggers */
            supported: boolean;
            /** @description Of a webhook trigger: UIDs of the webhooks it selects */
            webhook_ids?: string[];
        };
        AutomationVerdict: {
            /** @description The automation */
            automation_id: string;
            /** @description How its payload filter fares; of several triggers the first that matches */
            explanation?: components["schemas"]["Explanation"];
            /** @description Its name */
            name: string;
            /** @description Whether it starts a run for the payload; unknown when the payload is not kept */
            verdict: "matched" | "not_matched" | "disabled" | "unknown" | (string & {});
        };
        BundledSkill: {
            /** @description The skill's ID: input.bundled_skill_id of read_skill actions */
            id: string;
            /** @description What it is for */
            purpose: string;
        };
        BundledSkills: {
            /** @description What the catalog is, and is not */
            note: string;
            /** @description The catalog */
            skills: components["schemas"]["BundledSkill"][];
        };
        Condition: {
            /**
             * Format: date-time
             * @description Since when
             */
            last_transition_time: string;
            /** @description Why, in a sentence */
            message: string;
            /** @description Why, in one word */
            reason: string;
            /** @description Whether it holds */
            status: "True" | "False" | "Unknown" | (string & {});
            /** @description What is said */
            type: "Ready" | "Reconciling" | "Stalled" | (string & {});
        };
        Conversation: {
            /** @description The conversation's ID */
            conversation_id: string;
            /** @description What was said, a step for each execution of a run */
            steps: components["schemas"]["ConversationStep"][];
        };
        ConversationBlock: {
            /** @description action_result: the ID of its action */
            action_id?: string;
            /**
             * @description action, action_result: kind of action; skill for skills
             * @example skill
             */
            category?: string;
            /** @description event: what it tells */
            data?: unknown;
            /** @description action: its ID */
            id?: string;
            /** @description action: what it was given; of read_skill: skill_path and, for bundled skills, bundled_skill_id */
            input?: unknown;
            /**
             * @description What is done, or what happened; read_skill for the load of a skill
             * @example read_skill
             */
            name?: string;
            /** @description action_result: what came out */
            output?: unknown;
            /** @description action_result: how it ended */
            state?: string;
            /** @description text: what is said */
            text?: string;
            /** @description Kind of the block */
            type: "text" | "action" | "action_result" | "event" | (string & {});
        };
        ConversationMessage: {
            /** @description The parts of the message */
            content: components["schemas"]["ConversationBlock"][];
            /** @description Who speaks */
            role: "user" | "assistant" | (string & {});
            /**
             * Format: date-time
             * @description When it was said
             */
            timestamp: string;
        };
        ConversationStep: {
            /** @description The step's ID */
            id: string;
            /** @description The messages, oldest first */
            messages: components["schemas"]["ConversationMessage"][];
            /** @description Steps inside this one: what attempts said that were given up, when a worker was lost or handed the run back */
            steps: components["schemas"]["ConversationStep"][];
        };
        CreateAPIKeyRequest: {
            /**
             * Format: date-time
             * @description When it stops working, instead of expires_in
             */
            expires_at?: string | Date;
            /**
             * @description How long it works: days, hours, minutes and seconds; absent for ever
             * @example 24h
             */
            expires_in?: string;
            /** @description What it is for */
            name: string;
            /** @description What its holder may do */
            role: "viewer" | "runner" | "admin" | "worker" | (string & {});
        };
        CreateWebhookRequest: {
            /** @description How senders show who they are */
            auth_mode?: "token" | "url_token" | "signature" | (string & {});
            /** @description Header in which the sender puts its own event ID */
            delivery_id_header?: string;
            /** @description Whether it takes deliveries; true when absent */
            enabled?: boolean;
            /** @description Whether the provider's set-up probes are answered */
            handshake?: boolean;
            /**
             * @description Its name
             * @example alerts
             */
            name: string;
            /** @description The provider's signing secret, with signature; absent for one that is yet to come, or, with standard_webhooks and svix, to be made here */
            secret?: string;
            /** @description Name for its secret, or of an existing one; absent for a name made from the webhook's */
            secret_name?: string;
            /** @description The provider's signing scheme, with signature */
            signature_scheme?: string;
        };
        CreatedAPIKey: {
            /**
             * Format: date-time
             * @description When it was made
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it stops working; null for never
             */
            expires_at: string | null;
            /** @description What it is for */
            name: string;
            /**
             * Format: date-time
             * @description When it was revoked; null if it was not
             */
            revoked_at: string | null;
            /** @description viewer reads, runner also creates and steers runs, admin may do everything, worker executes runs and has no API */
            role: "viewer" | "runner" | "admin" | "worker" | (string & {});
            /** @description The key itself, shown this once */
            secret: string;
            /**
             * @description Identifier
             * @example key_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
        };
        DefinitionFile: {
            /** @description Its text */
            content: string;
            /**
             * @description Path relative to the root of the tree, with forward slashes
             * @example webhooks/alerts.yaml
             */
            path: string;
        };
        Delivery: {
            /**
             * Format: int64
             * @description How many requests share this row; above 1 only in a flood of rejected ones
             */
            count: number;
            /**
             * @description Identifier
             * @example dlv_01h455vb4pex5vsknk084sn02q
             */
            delivery_id: string;
            /** @description Of a duplicate: the delivery that was accepted first */
            duplicate_of?: string;
            /** @description The provider's name of the event, escaped, at most 128 characters */
            event?: string;
            /** @description What tells it apart from others, escaped, at most 128 characters; empty unless the request got that far */
            identity: string;
            /** @description Where the identity comes from; empty if there is none */
            identity_source: "" | "header" | "provider" | "service_header" | "body_hash" | (string & {});
            /**
             * @description The outcome, for people to read
             * @example Rejected (auth)
             */
            label: string;
            /**
             * Format: date-time
             * @description When the last one came, where count is above 1
             */
            last_received_at?: string;
            /** @description What became of it */
            outcome: "accepted" | "duplicate" | "rejected_auth" | "rejected_invalid_json" | "rejected_too_large" | "handshake" | (string & {});
            /** @description The precise cause; may be empty */
            reason: string;
            /**
             * Format: date-time
             * @description When it came, or the first of count
             */
            received_at: string;
            /** @description Of a replay: the delivery that was started again */
            replay_of?: string;
            /** @description The runs that it started, oldest first */
            runs: components["schemas"]["DeliveryRun"][];
            /** @description Address of the sender, or its IPv6 network */
            sender: string;
            /**
             * Format: int64
             * @description Size of the body; null where it is not known, the smallest where count is above 1
             */
            size_bytes: number | null;
            /**
             * Format: int64
             * @description The largest size, where count is above 1
             */
            size_bytes_max?: number;
        };
        DeliveryCounts: {
            /**
             * Format: int64
             * @description Accepted
             */
            accepted: number;
            /**
             * Format: int64
             * @description Accepted before under the same identity
             */
            duplicate: number;
            /**
             * Format: int64
             * @description Set-up probes that were answered
             */
            handshake: number;
            /**
             * Format: int64
             * @description Not authenticated
             */
            rejected_auth: number;
            /**
             * Format: int64
             * @description Not valid JSON
             */
            rejected_invalid_json: number;
            /**
             * Format: int64
             * @description Over the size limit
             */
            rejected_too_large: number;
        };
        DeliveryDetail: {
            /** @description What each automation that selects the webhook makes of the payload, worked out anew */
            automations: components["schemas"]["AutomationVerdict"][];
            /**
             * Format: int64
             * @description How many requests share this row; above 1 only in a flood of rejected ones
             */
            count: number;
            /** @description Whether the definition has changed since the delivery, so that the verdicts may differ from those of then */
            definition_changed: boolean;
            /**
             * @description Identifier
             * @example dlv_01h455vb4pex5vsknk084sn02q
             */
            delivery_id: string;
            /** @description Of a duplicate: the delivery that was accepted first */
            duplicate_of?: string;
            /** @description The provider's name of the event, escaped, at most 128 characters */
            event?: string;
            /** @description What tells it apart from others, escaped, at most 128 characters; empty unless the request got that far */
            identity: string;
            /** @description Where the identity comes from; empty if there is none */
            identity_source: "" | "header" | "provider" | "service_header" | "body_hash" | (string & {});
            /**
             * @description The outcome, for people to read
             * @example Rejected (auth)
             */
            label: string;
            /**
             * Format: date-time
             * @description When the last one came, where count is above 1
             */
            last_received_at?: string;
            /** @description What became of it */
            outcome: "accepted" | "duplicate" | "rejected_auth" | "rejected_invalid_json" | "rejected_too_large" | "handshake" | (string & {});
            /** @description The body, of an accepted delivery, for as long as it is kept */
            payload?: unknown;
            /** @description The precise cause; may be empty */
            reason: string;
            /**
             * Format: date-time
             * @description When it came, or the first of count
             */
            received_at: string;
            /** @description Of a replay: the delivery that was started again */
            replay_of?: string;
            /** @description The runs that it started, oldest first */
            runs: components["schemas"]["DeliveryRun"][];
            /** @description Address of the sender, or its IPv6 network */
            sender: string;
            /**
             * Format: int64
             * @description Size of the body; null where it is not known, the smallest where count is above 1
             */
            size_bytes: number | null;
            /**
             * Format: int64
             * @description The largest size, where count is above 1
             */
            size_bytes_max?: number;
        };
        DeliveryRun: {
            /** @description The automation that it is a run of */
            automation_id: string;
            /** @description Identifier of the run */
            run_id: string;
            /** @description Its state */
            state: string;
            /** @description Its title */
            title: string;
        };
        EditFileRequest: {
            /** @description The text of the file */
            content: string;
        };
        Error: {
            /**
             * @description What kind of error
             * @example invalid_request
             */
            code: string;
            /** @description What exactly was wrong */
            detail?: string;
            /** @description Title, or title (detail) */
            error: string;
            /** @description The fields that were wrong */
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
        Explanation: {
            /** @description Every operator of every field, in the order of the filter */
            leaves: components["schemas"]["LeafExplanation"][];
            /** @description Whether the filter matches */
            matched: boolean;
            /** @description Why, where the filter as a whole decides: there is none, it is empty, or the body is no object */
            reason?: string;
        };
        Factory: {
            /** @description The agents of the applied definition, by name */
            agents: components["schemas"]["FactoryAgent"][];
            /** @description alias of factory.yaml, or empty */
            alias: string;
            /** @description Where it stands, as Ready, Reconciling and Stalled */
            conditions: components["schemas"]["Condition"][];
            /** @description How many resources the applied definition has */
            counts: components["schemas"]["FactoryCounts"];
            /**
             * Format: date-time
             * @description When it was first configured
             */
            created_at: string;
            /** @description description of factory.yaml, or empty */
            description: string;
            /** @description Whether it is no longer configured: its webhooks answer 404 */
            detached: boolean;
            /** @description name of factory.yaml, which is for display only */
            display_name?: string;
            /** @description Its identity: the name in the server's settings */
            name: string;
            /** @description repositories of factory.yaml */
            repositories: components["schemas"]["Repository"][];
            /** @description Where its definition comes from */
            source: components["schemas"]["FactorySource"];
            /** @description Whether its settings suspend it: it is applied only when asked */
            suspended: boolean;
            /** @description Where its definition stands */
            sync: components["schemas"]["FactorySync"];
            /**
             * @description Identifier
             * @example fac_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /**
             * Format: date-time
             * @description When its settings or its factory.yaml last changed
             */
            updated_at: string;
        };
        FactoryAgent: {
            /** @description Its name */
            name: string;
            /**
             * @description Its agentType
             * @example FOREMAN
             */
            type: string;
            /** @description Identifier, for agent_identity_uid of a run */
            uid: string;
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
        FactoryRunRequest: {
            /** @description What to change of the configuration that the definition gives */
            config?: components["schemas"]["AmbientAgentConfig"];
            /** @description What is to be done */
            prompt: string;
            /** @description The ticket that the work is for */
            ticket_ref?: string | null;
            /** @description Its address */
            ticket_url?: string | null;
            /** @description Text for people; the prompt's first line when absent */
            title?: string | null;
        };
        FactoryRunResponse: {
            /** @description The factory */
            factory_uid: string;
            /** @description Name of the agent that does it; empty when the definition has no foreman */
            foreman_agent: string;
            /** @description The run's ID */
            run_id: string;
            /** @description The run's page on the dashboard */
            run_url: string;
            /** @description Where the run stands */
            state: components["schemas"]["RunState"];
            /** @description As given */
            ticket_ref: string;
        };
        FactorySource: {
            /** @description Branch that is watched; empty unless kind is git */
            branch: string;
            /** @description A git branch, a directory, or the server itself */
            kind: "git" | "dir" | "managed" | (string & {});
            /** @description The directory, or the one inside the repository */
            path: string;
            /** @description Address of the repository, without credentials; empty unless kind is git */
            url: string;
        };
        FactorySync: {
            /** @description The revision that serves; empty before the first */
            applied_revision: string;
            /** @description The revision last looked at; empty before the first */
            attempted_revision: string;
            /**
             * Format: date-time
             * @description When a revision was last applied
             */
            last_applied_at: string | null;
            /**
             * Format: date-time
             * @description When the last attempt ended
             */
            last_attempted_at: string | null;
            /** @description Why the last attempt was refused or failed, in one line; else empty */
            message: string;
            /** @description What the last attempt found in the definition */
            problems: components["schemas"]["Problem"][];
            /** @description What became of the last attempt to apply; refused and failed leave the last applied definition in place */
            state: "pending" | "applied" | "refused" | "failed" | (string & {});
        };
        FieldError: {
            /**
             * @description Path of the field
             * @example config.skill_spec
             */
            field: string;
            /** @description What is wrong with it */
            message: string;
        };
        FileContent: {
            /** @description Its text */
            content: string;
            /**
             * @description Path relative to the root of the definition
             * @example webhooks/alerts.yaml
             */
            path: string;
            /**
             * @description The revision it is of: base_revision of an edit of it
             * @example r12
             */
            revision: string;
        };
        FileDifference: {
            /** @description What became of it */
            action: "create" | "update" | "delete" | (string & {});
            /** @description The lines that changed, as a unified difference; empty when the answer has grown too long */
            difference: string;
            /** @description Path relative to the root of the definition */
            path: string;
        };
        FilterTestRequest: {
            /** @description A stored delivery of this factory */
            delivery_id?: string;
            /** @description The payload filter, an object; absent for none */
            filter?: unknown;
            /** @description A body to test with, instead of delivery_id */
            payload?: unknown;
            /** @description The webhooks that the trigger selects; absent for any */
            webhook_ids?: string[];
        };
        FilterTestResponse: {
            /** @description How the filter fares on the payload, leaf by leaf */
            explanation: components["schemas"]["Explanation"];
            /** @description Whether the payload matches the filter */
            payload_check: boolean;
            /** @description Whether the delivery's webhook is among those selected or, without a delivery, whether any of them is enabled */
            webhook_check: boolean;
            /** @description Why the webhook check came out as it did */
            webhook_reason: string;
            /** @description Whether both checks pass */
            would_trigger: boolean;
        };
        Harness: {
            /** @description The language model */
            model_id?: string | null;
            /** @description How hard the model is to think */
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
            /** @description The whole tree; files that are not in it are deleted */
            files: components["schemas"]["DefinitionFile"][];
        };
        LeafExplanation: {
            /** @description The operator's value as JSON, at most 200 bytes */
            expected: string;
            /** @description The value found as JSON, at most 200 bytes */
            found?: string;
            /** @description The operator */
            operator: "in" | "not_in" | "exists" | (string & {});
            /** @description Whether the operator holds */
            passed: boolean;
            /** @description The field's keys in the filter */
            path: string[];
            /** @description Whether the field is there */
            present: boolean;
            /**
             * @description The place looked at in the body
             * @example commits[2].author
             */
            where: string;
        };
        ListAPIKeysResponse: {
            /** @description The keys, newest first, revoked ones included */
            keys: components["schemas"]["APIKey"][];
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
        };
        ListAutomationsResponse: {
            /** @description The automations, by name */
            automations: components["schemas"]["Automation"][];
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
        };
        ListDeliveriesResponse: {
            /** @description The deliveries, newest first */
            deliveries: components["schemas"]["Delivery"][];
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
        };
        ListFactoriesResponse: {
            /** @description The factories, by name */
            factories: components["schemas"]["Factory"][];
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
        };
        ListFilesResponse: {
            /** @description The files, by path */
            files: components["schemas"]["HeldFile"][];
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
            /**
             * @description The revision they are of
             * @example r12
             */
            revision: string;
        };
        ListRevisionsResponse: {
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
            /** @description The revisions, newest first */
            revisions: components["schemas"]["Revision"][];
        };
        ListRunsResponse: {
            /** @description Whether there are more */
            page_info: components["schemas"]["PageInfo"];
            /** @description The runs */
            runs: components["schemas"]["RunItem"][];
        };
        ListSecretsResponse: {
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
            /** @description The secrets, by name */
            secrets: components["schemas"]["Secret"][];
        };
        ListSyncsResponse: {
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
            /** @description The attempts, newest first */
            syncs: components["schemas"]["Sync"][];
        };
        ListWebhooksResponse: {
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
            /** @description The webhooks, by name */
            webhooks: components["schemas"]["Webhook"][];
        };
        ListWorkersResponse: {
            /** @description Whether the list goes on */
            page_info: components["schemas"]["PageInfo"];
            /** @description The workers seen within a day, by UID */
            workers: components["schemas"]["Worker"][];
        };
        MCPServerConfig: {
            /** @description Its arguments */
            args?: string[] | null;
            /** @description Program to start */
            command?: string | null;
            /** @description Environment variables; values are returned as ***. ${secret:NAME} is a team secret: with a key of role admin, or in a server that the applied definition has just so */
            env?: {
                [key: string]: string;
            } | null;
            /** @description HTTP headers; values are returned as ***. ${secret:NAME} is a team secret: with a key of role admin, or where the applied definition has the same server and grants it the secret */
            headers?: {
                [key: string]: string;
            } | null;
            /** @description Address of a server */
            url?: string | null;
            /** @description Identifier of a shared server */
            warp_id?: string | null;
        };
        PageInfo: {
            /** @description Whether more follows */
            has_next_page: boolean;
            /** @description What to give as cursor for the next page; empty on the last */
            next_cursor: string;
        };
        Plan: {
            /** @description The revision that is applied now; empty before the first */
            base_revision: string;
            /** @description What becomes of every resource, by kind and name; none when the tree has errors */
            changes: components["schemas"]["PlanChange"][];
            /** @description The revision that was planned; empty for files that came with the request */
            head_revision: string;
            /** @description What is wrong with the tree, by file and place */
            problems: components["schemas"]["Problem"][];
            /** @description The secrets whose newer value would be picked up, by name */
            secrets: components["schemas"]["PlanSecret"][];
            /** @description The rules that were not checked */
            state_dependent_checks_not_run?: string[];
            /** @description The UID that each webhook of the tree has or will get, by name */
            webhook_uids?: {
                [key: string]: string;
            };
            /** @description Whether applying the tree would be accepted */
            would_apply: boolean;
        };
        PlanChange: {
            /** @description What becomes of it */
            action: "create" | "update" | "delete" | "unchanged" | (string & {});
            /** @description Of an update: the keys that change */
            fields: components["schemas"]["PlanField"][];
            /** @description The file that declares it */
            file: string;
            /** @description Kind of the resource */
            kind: "factory" | "webhook" | "automation" | "agent" | "runner" | "skill" | (string & {});
            /**
             * Format: int64
             * @description The line of the file on which its first key stands, from 1
             */
            line: number;
            /** @description Its name; of a skill of one agent: agent/skill */
            name: string;
            /** @description The UID that it has or, a webhook, will get */
            uid?: string;
        };
        PlanField: {
            /** @description The key */
            name: string;
            /** @description Its value then; null for none */
            new: unknown;
            /** @description Its value now; null for none */
            old: unknown;
        };
        PlanRequest: {
            /** @description The whole tree; absent for the current head of the factory's source, which needs role runner */
            files?: components["schemas"]["DefinitionFile"][];
        };
        PlanSecret: {
            /** @description Name of the secret */
            name: string;
            /**
             * Format: int64
             * @description The version that would be picked up
             */
            version: number;
            /** @description Names of the webhooks that would pick it up */
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
            /** @description The line with a caret line below it, as validate prints it, where it is known */
            excerpt?: string;
            /** @description What to do */
            hint?: string;
            /**
             * Format: int64
             * @description Line, from 1
             */
            line: number;
            /** @description What is wrong */
            message: string;
            /** @description File, relative to the root of the tree */
            path: string;
            /** @description Only an error keeps a definition from being applied */
            severity: "error" | "warning" | "info" | (string & {});
        };
        ReplayResponse: {
            /** @description The new delivery */
            delivery_id: string;
            /** @description The delivery that was started again */
            replay_of: string;
            /** @description The runs that were started */
            runs: components["schemas"]["DeliveryRun"][];
        };
        Repository: {
            /** @description Its name */
            name: string;
            /** @description Its owner */
            owner: string;
        };
        Revision: {
            /** @description Name of the API key that made it */
            author: string;
            /**
             * Format: date-time
             * @description When it was made
             */
            created_at: string;
            /**
             * Format: int64
             * @description How many files it wrote or deleted; none for a new secret
             */
            files_changed: number;
            /**
             * @description Identifier; later ones have higher numbers
             * @example r12
             */
            revision: string;
            /**
             * @description What it did
             * @example disable webhook alerts
             */
            subject: string;
        };
        RevisionWithDifference: {
            /** @description Name of the API key that made it */
            author: string;
            /**
             * Format: date-time
             * @description When it was made
             */
            created_at: string;
            /** @description The files that it changed, by path */
            files: components["schemas"]["FileDifference"][];
            /**
             * Format: int64
             * @description How many files it wrote or deleted; none for a new secret
             */
            files_changed: number;
            /**
             * @description Identifier; later ones have higher numbers
             * @example r12
             */
            revision: string;
            /**
             * @description What it did
             * @example disable webhook alerts
             */
            subject: string;
        };
        RotateSecretRequest: {
            /** @description The provider's new signing secret, with signature; absent where the server makes it */
            secret?: string;
            /** @description Rotate although other webhooks use the secret too */
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
            /** @description What the agent is to do; required unless a skill or a conversation is given */
            prompt?: string | null;
            /** @description As config.skill_spec, which it replaces; also repo:name and repo:path */
            skill?: string | null;
            /** @description Text for people; the prompt's first line when absent */
            title?: string | null;
        };
        RunAgentResponse: {
            /** @description The run's ID */
            run_id: string;
            /** @description Where the run stands */
            state: components["schemas"]["RunState"];
            /** @description The same as run_id */
            task_id: string;
        };
        RunCreatorInfo: {
            /** @description Its name */
            display_name: string;
            /** @description What it is */
            type: "user" | "service_account" | (string & {});
            /** @description Its identifier */
            uid: string;
        };
        RunFollowupRequest: {
            /** @description The text; not blank */
            message: string;
        };
        RunFollowupResponse: {
            /** @description The message's ID */
            followup_id: string;
            /** @description queued_prompt: it joined the prompt of the queued run; queue_pending: it is next when the execution ends; handoff_execution: the run had ended, and is queued again */
            outcome: "queued_prompt" | "queue_pending" | "handoff_execution" | (string & {});
        };
        RunItem: {
            /** @description What the agent said it has */
            advertised_skills: components["schemas"]["AdvertisedSkill"][];
            /** @description The resolved configuration */
            agent_config: components["schemas"]["AmbientAgentConfig"];
            /** @description The files that the agent gets */
            attachments: components["schemas"]["AttachmentInfo"][];
            /**
             * Format: date-time
             * @description When the end of the run was asked for
             */
            cancel_requested_at?: string;
            /** @description The conversation that the run belongs to */
            conversation_id: string;
            /**
             * Format: date-time
             * @description When the run was made
             */
            created_at: string;
            /** @description Who made the run */
            creator: components["schemas"]["RunCreatorInfo"];
            /** @description The worker that executes it, or did */
            executor?: components["schemas"]["RunCreatorInfo"];
            /** @description The factory that the run belongs to */
            factory_uid?: string;
            /**
             * Format: date-time
             * @description When it ended
             */
            finished_at: string | null;
            /** @description Whether runs of this kind can be cancelled */
            is_run_type_cancellable: boolean;
            /** @description What the creator attached; of a run that a delivery started also automation_id, webhook_id and delivery_id */
            metadata: {
                [key: string]: string;
            };
            /** @description The run that started this one */
            parent_run_id?: string;
            /** @description Text that the agent executes */
            prompt: string;
            /** @description The first of the runs that led to this one; itself when it has no parent */
            root_run_id: string;
            /**
             * @description The run's ID
             * @example 01960f3e-8a4b-7c3d-9e5f-0a1b2c3d4e5f
             */
            run_id: string;
            /**
             * @description How long it has run, or ran, as an ISO 8601 duration
             * @example PT12.5S
             */
            run_time?: string;
            /** @description Identifier of the session */
            session_id: string;
            /** @description The run's page on the dashboard */
            session_link: string;
            /** @description What made the run */
            source: components["schemas"]["RunSourceType"];
            /**
             * Format: date-time
             * @description When its execution began
             */
            started_at: string | null;
            /** @description Where the run stands. FAILED: the agent's work failed; ERROR: the platform failed; BLOCKED: the agent waits for input */
            state: components["schemas"]["RunState"];
            /** @description What to know about the state */
            status_message?: components["schemas"]["RunStatusMessage"];
            /** @description The full text given to the agent, envelope included; not in lists */
            submitted_prompt?: string;
            /** @description The same as run_id */
            task_id: string;
            /** @description Text for people */
            title: string;
            /** @description What started the run */
            trigger_url?: string;
            /**
             * Format: date-time
             * @description When it last changed
             */
            updated_at: string;
        };
        /**
         * @description What made a run: API, CLI, WEB_APP, CUSTOM_WEBHOOK, SCHEDULED_AGENT, ORCHESTRATION, or another.
         * @example API
         * @example CLI
         * @example WEB_APP
         * @example CUSTOM_WEBHOOK
         * @example SCHEDULED_AGENT
         * @example ORCHESTRATION
         */
        RunSourceType: "API" | "CLI" | "WEB_APP" | "CUSTOM_WEBHOOK" | "SCHEDULED_AGENT" | "ORCHESTRATION" | (string & {});
        /** @description Where a run stands. FAILED: the agent's work failed, and the user must act; ERROR: the platform failed, and a retry may help; BLOCKED: the agent waits for input; PENDING is never produced. */
        RunState: "PENDING" | "QUEUED" | "CLAIMED" | "INPROGRESS" | "SUCCEEDED" | "FAILED" | "ERROR" | "BLOCKED" | "CANCELLED" | (string & {});
        RunStateEvent: {
            /**
             * Format: int64
             * @description Which attempt of the execution, from 1
             */
            attempt: number;
            /** @description What kind of failure */
            error_code?: string;
            /**
             * Format: int64
             * @description Which execution, from 1; a follow-up to a run that ended begins a new one
             */
            execution: number;
            /** @description Text for people */
            message?: string;
            /** @description The run's ID */
            run_id: string;
            /** @description The state that it is in now */
            state: components["schemas"]["RunState"];
            /**
             * Format: date-time
             * @description When it changed
             */
            timestamp: string;
        };
        RunStatusMessage: {
            /**
             * @description What kind of failure
             * @example agent_process_failed
             */
            error_code?: string;
            /** @description Text for people */
            message: string;
            /** @description Whether the same run may succeed another time */
            retryable: boolean;
        };
        SchemaDocuments: {
            /** @description The JSON Schema (2020-12) of each kind of definition file; of a Markdown file, of its front matter */
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
            /** @description Where its schemas are */
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
            /** @description Name, as in secretName of a webhook */
            name: string;
            /** @description Its value is yet to come: every request to its webhooks is refused with 401 */
            pending: boolean;
            /** @description A source uses it, so that no definition may name it */
            reserved: boolean;
            /**
             * Format: date-time
             * @description When it was last given a value
             */
            updated_at: string;
            /**
             * @description What uses it, in words: webhooks, agents and automations that give it to runs, sources. A secret in use cannot be deleted
             * @example [
             *       "webhook ci of factory default"
             *     ]
             */
            used_by: string[];
            /**
             * Format: int64
             * @description Counts the values it has had; webhooks use the one that was current when their definition last applied
             */
            version: number;
            /** @description In the answer to a new value: webhooks that cannot use it */
            warnings?: string[] | null;
            /** @description UIDs of the webhooks that use it */
            webhooks: string[];
        };
        SelectedWebhook: {
            /** @description Its name; empty when there is none of that UID */
            name: string;
            /** @description Whether deliveries to it start the automation */
            state: "enabled" | "disabled" | "deleted" | "unknown" | (string & {});
            /** @description UID, as the automation writes it */
            uid: string;
        };
        SetSecretRequest: {
            /** @description true: the value is yet to come from the provider */
            pending?: boolean;
            /** @description The value; required unless pending is true */
            value?: string;
        };
        Sync: {
            /** @description Author of the commit, or name of the API key that made the edit, where there is one */
            author: string;
            /**
             * Format: date-time
             * @description Time of the commit or edit, where there is one
             */
            committed_at: string | null;
            /** @description How many resources it changed */
            counts: components["schemas"]["SyncCounts"];
            /**
             * Format: date-time
             * @description When it ended
             */
            finished_at: string;
            /** @description Why it was refused or failed, in one line; else empty */
            message: string;
            /** @description What became of it: refused for errors in the definition, failed because the source could not be read */
            outcome: "applied" | "refused" | "unchanged" | "failed" | (string & {});
            /** @description What it found in the definition */
            problems: components["schemas"]["Problem"][];
            /** @description A git commit, sha256:… of the content, or r12 of one that the server holds; empty if the source could not be read */
            revision: string;
            /** @description Where the definition came from */
            source: components["schemas"]["FactorySource"];
            /**
             * Format: date-time
             * @description When it began
             */
            started_at: string;
            /** @description First line of the commit message, or what the edit did, where there is one */
            subject: string;
        };
        SyncCounts: {
            /**
             * Format: int64
             * @description Resources created
             */
            created: number;
            /**
             * Format: int64
             * @description Resources deleted
             */
            deleted: number;
            /**
             * Format: int64
             * @description Webhooks that picked up a new value of their secret
             */
            secrets: number;
            /**
             * Format: int64
             * @description Resources left alone
             */
            unchanged: number;
            /**
             * Format: int64
             * @description Resources updated
             */
            updated: number;
        };
        SyncRequest: {
            /** @description Delete all webhooks, or more than half of them, if the definition says so */
            allow_prune?: boolean;
            /** @description Replace a webhook by one of the same content under another name */
            allow_rename?: boolean;
        };
        UpdateWebhookRequest: {
            /** @description How senders show who they are; a signature_scheme that does not go with it goes away */
            auth_mode?: "token" | "url_token" | "signature" | (string & {});
            /** @description Header in which the sender puts its own event ID; empty for none */
            delivery_id_header?: string;
            /** @description Whether it takes deliveries */
            enabled?: boolean;
            /** @description Whether the provider's set-up probes are answered */
            handshake?: boolean;
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
            /** @description What was found, by file and place */
            diagnostics: components["schemas"]["Problem"][];
            /**
             * Format: int64
             * @description How many more there are
             */
            diagnostics_omitted?: number;
            /** @description The version of the rules */
            schema_version: string;
            /** @description The rules that were not checked, because they need a server's state */
            state_dependent_checks_not_run: string[];
            /** @description Whether no diagnostic is an error */
            valid: boolean;
        };
        Webhook: {
            /** @description How senders show who they are */
            auth_mode: "token" | "url_token" | "signature" | (string & {});
            /** @description How many requests of each outcome its log holds */
            counts: components["schemas"]["DeliveryCounts"];
            /**
             * Format: date-time
             * @description When it was first applied
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was deleted; null while it lives
             */
            deleted_at: string | null;
            /** @description Header in which the sender puts its own event ID, or empty */
            delivery_id_header: string;
            /** @description Whether it takes deliveries; if not, senders get 404 */
            enabled: boolean;
            /**
             * @description The definition file, relative to the root of the definition
             * @example webhooks/alerts.yaml
             */
            file: string;
            /** @description Whether the provider's set-up probes are answered */
            handshake: boolean;
            /**
             * @description Where senders post to, {token} in place of a URL token
             * @example https://hooks.example.com/webhooks/w/wh_01h455vb4pex5vsknk084sn02q
             */
            ingress_url: string;
            /**
             * Format: int64
             * @description The line of the file on which its first key stands, from 1
             */
            line: number;
            /** @description Its name: that of its file */
            name: string;
            /** @description The team secret that holds the credential */
            secret_name: string;
            /** @description Whether the secret has no value yet, so that every request is refused with 401 */
            secret_pending: boolean;
            /** @description Whether a newer value of the secret waits for the next apply */
            secret_stale: boolean;
            /**
             * Format: int64
             * @description The version of the secret that is in use; 0 when the webhook is deleted
             */
            secret_version: number;
            /** @description The provider's signing scheme, as the file writes it; empty unless auth_mode is signature */
            signature_scheme: string;
            /**
             * @description Identifier, part of the ingress URL
             * @example wh_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /**
             * Format: date-time
             * @description When it last changed
             */
            updated_at: string;
        };
        WebhookWithSecret: {
            /** @description How senders show who they are */
            auth_mode: "token" | "url_token" | "signature" | (string & {});
            /** @description How many requests of each outcome its log holds */
            counts: components["schemas"]["DeliveryCounts"];
            /**
             * Format: date-time
             * @description When it was first applied
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was deleted; null while it lives
             */
            deleted_at: string | null;
            /** @description Header in which the sender puts its own event ID, or empty */
            delivery_id_header: string;
            /** @description Whether it takes deliveries; if not, senders get 404 */
            enabled: boolean;
            /**
             * @description The definition file, relative to the root of the definition
             * @example webhooks/alerts.yaml
             */
            file: string;
            /** @description Whether the provider's set-up probes are answered */
            handshake: boolean;
            /**
             * @description Where senders post to, {token} in place of a URL token
             * @example https://hooks.example.com/webhooks/w/wh_01h455vb4pex5vsknk084sn02q
             */
            ingress_url: string;
            /**
             * Format: int64
             * @description The line of the file on which its first key stands, from 1
             */
            line: number;
            /** @description Its name: that of its file */
            name: string;
            /** @description The secret, shown this once, as a URL token is in ingress_url; absent when it was there before or is yet to come */
            secret?: string;
            /** @description The team secret that holds the credential */
            secret_name: string;
            /** @description Whether the secret has no value yet, so that every request is refused with 401 */
            secret_pending: boolean;
            /** @description Whether a newer value of the secret waits for the next apply */
            secret_stale: boolean;
            /**
             * Format: int64
             * @description The version of the secret that is in use; 0 when the webhook is deleted
             */
            secret_version: number;
            /** @description The provider's signing scheme, as the file writes it; empty unless auth_mode is signature */
            signature_scheme: string;
            /**
             * @description Identifier, part of the ingress URL
             * @example wh_01h455vb4pex5vsknk084sn02q
             */
            uid: string;
            /**
             * Format: date-time
             * @description When it last changed
             */
            updated_at: string;
        };
        Worker: {
            /**
             * Format: int64
             * @description How many it executes now
             */
            busy: number;
            /** @description The harnesses that it has */
            harnesses: string[];
            /** @description UID of the API key that it works with; empty for the worker in a server's own process */
            key_uid: string;
            /**
             * Format: date-time
             * @description When it last reported; it does so every 10 seconds
             */
            last_seen_at: string;
            /** @description Whether it reported within the last 30 seconds */
            live: boolean;
            /** @description Its name: that of its host unless it was given another */
            name: string;
            /** @description IDs of the runs that it executes */
            runs: string[];
            /**
             * Format: int64
             * @description How many runs it executes at once
             */
            slots: number;
            /**
             * @description Identifier of the process
             * @example wrk_2x4y6z8a0b1c3d5e7f9g1h3j5k
             */
            uid: string;
            /** @description The version of the program that it runs */
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
    listRuns: {
        parameters: {
            query?: {
                /** @description Only runs with these values in their metadata: metadata[key]=value */
                metadata?: {
                    [key: string]: string;
                };
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
                cursor?: string;
                /** @description What to order by */
                sort_by?: "updated_at" | "created_at" | "title" | "agent" | (string & {});
                /** @description In which direction */
                sort_order?: "desc" | "asc" | (string & {});
                /** @description Only runs in one of these states */
                state?: ("QUEUED" | "PENDING" | "CLAIMED" | "INPROGRESS" | "SUCCEEDED" | "FAILED" | "ERROR" | "BLOCKED" | "CANCELLED" | (string & {})) | ("QUEUED" | "PENDING" | "CLAIMED" | "INPROGRESS" | "SUCCEEDED" | "FAILED" | "ERROR" | "BLOCKED" | "CANCELLED" | (string & {}))[];
                /** @description Only runs whose state is one of these kinds */
                task_status?: ("running" | "failed" | "blocked" | "cancelled" | "complete" | (string & {})) | ("running" | "failed" | "blocked" | "cancelled" | "complete" | (string & {}))[];
                /** @description Only runs of one of these sources: RunSourceType */
                source?: string | string[];
                /** @description Only runs with this config name */
                name?: string;
                /** @description Only runs of this language model */
                model_id?: string;
                /** @description Only runs that the holder of this UID made */
                creator?: string;
                /** @description Only runs that the worker of this UID executes or executed */
                executor?: string;
                /** @description Only runs of this environment */
                environment_id?: string;
                /** @description Only runs of this skill */
                skill?: string;
                /** @description The same as skill */
                skill_spec?: string;
                /** @description Only runs made after this time (RFC 3339) */
                created_after?: string | Date;
                /** @description Only runs made before this time (RFC 3339) */
                created_before?: string | Date;
                /** @description Only runs changed after this time (RFC 3339) */
                updated_after?: string | Date;
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
                /** @description Only runs that this run led to, at any depth */
                ancestor_run_id?: string;
                /** @description Only runs with this in their title or prompt, in any case, or with this ID */
                q?: string;
                /** @description LOCAL matches nothing here, REMOTE all */
                execution_location?: "LOCAL" | "REMOTE" | (string & {});
                /** @description Matches nothing here */
                schedule_id?: string;
                /** @description Matches nothing here */
                artifact_type?: string;
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
                /** @description A repeat with the same key and body within 24 hours answers as the first one did */
                "Idempotency-Key"?: string;
                /** @description What the request comes from: cli or web; the run's source is set by it */
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
                /** @description The ID of the last event that was received; the stream goes on after it */
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
            /** @description The run has ended, and every event was received */
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
                /** @description A repeat with the same key and body within 24 hours answers as the first one did, and sends nothing */
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
    listFactories: {
        parameters: {
            query?: {
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
                cursor?: string;
                /** @description Part of the name or alias, in any case */
                search?: string;
                /** @description Also those that are no longer configured */
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
                /** @description ETag of the copy that the client has */
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
                /** @description ETag of the copy that the client has */
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
                /** @description ETag of the copy that the client has */
                "If-None-Match"?: string;
            };
            path: {
                /** @description The version */
                version: string;
                /** @description The kind of file */
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
    listAutomations: {
        parameters: {
            query?: {
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
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
    listFiles: {
        parameters: {
            query?: {
                /** @description ID of the revision; absent for the newest */
                revision?: string;
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
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
                /** @description The revision that the edit was made on: 409 when what it changes was changed after that; absent to change the newest, whatever it says */
                base_revision?: string;
                /** @description Delete all webhooks, or more than half of them */
                allow_prune?: boolean;
                /** @description Replace a webhook by one of the same content under another name */
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
                /** @description The revision that the edit was made on: 409 when what it changes was changed after that; absent to change the newest, whatever it says */
                base_revision?: string;
                /** @description Delete all webhooks, or more than half of them */
                allow_prune?: boolean;
                /** @description Replace a webhook by one of the same content under another name */
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
                /** @description Path of the file, relative to the root of the definition; its slashes may be written as they are */
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
                /** @description The revision that the edit was made on: 409 when what it changes was changed after that; absent to change the newest, whatever it says */
                base_revision?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Path of the file, relative to the root of the definition; its slashes may be written as they are */
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
                /** @description The revision that the edit was made on: 409 when what it changes was changed after that; absent to change the newest, whatever it says */
                base_revision?: string;
            };
            header?: never;
            path: {
                /** @description UID of the factory */
                uid: string;
                /** @description Path of the file, relative to the root of the definition; its slashes may be written as they are */
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
    listRevisions: {
        parameters: {
            query?: {
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
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
                /** @description The revision that the edit was made on: 409 when what it changes was changed after that; absent to change the newest, whatever it says */
                base_revision?: string;
                /** @description Delete all webhooks, or more than half of them */
                allow_prune?: boolean;
                /** @description Replace a webhook by one of the same content under another name */
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
    createFactoryRun: {
        parameters: {
            query?: never;
            header?: {
                /** @description A repeat with the same key and body within 24 hours answers as the first one did */
                "Idempotency-Key"?: string;
                /** @description What the request comes from: cli or web; the run's source is set by it */
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
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
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
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
                cursor?: string;
                /** @description Also deleted ones */
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
                /** @description Delete its secret too, unless something else uses it */
                delete_secret?: boolean;
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
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
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
                /** @description The ID of the last event that was received; the stream goes on after it */
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
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
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
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
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
                /** @description How many to return at most */
                limit?: number;
                /** @description next_cursor of the page before; absent for the first page */
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
