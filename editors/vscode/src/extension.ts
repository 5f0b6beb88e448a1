import { commands, ExtensionContext, window, workspace } from 'vscode';
import { Executable, LanguageClient, LanguageClientOptions } from 'vscode-languageclient/node';

// The files of definitions. Others in these directories are not sent to the program.
const patterns = [
  '**/factory.yaml',
  '**/{webhooks,runners,environments,notifications}/*.yaml',
  '**/automations/*.md',
  '**/automations/*/automation.md',
  '**/agents/*/agent.md',
  '**/skills/*/SKILL.md',
];

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  context.subscriptions.push(
    commands.registerCommand('millwright.restart', restart),
    workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('millwright')) {
        void restart();
      }
    }),
  );
  await start();
}

export function deactivate(): Promise<void> | undefined {
  return client?.stop();
}

async function restart(): Promise<void> {
  const old = client;
  client = undefined;
  await old?.stop().catch(() => undefined);
  await start();
}

async function start(): Promise<void> {
  const started = new LanguageClient('millwright', 'Millwright', program(), options());
  client = started;
  try {
    await started.start();
  } catch (error) {
    void window.showErrorMessage(
      `Millwright does not start: set millwright.path in the user settings (${String(error)})`,
    );
  }
}

// program is the command that serves this editor. Only user settings count: a workspace chooses neither a
// program, nor a server, nor a key.
function program(): Executable {
  const args = ['lsp'];
  for (const [setting, flag] of [
    ['server', '--server'],
    ['keyFile', '--key-file'],
    ['factory', '--factory'],
  ] as const) {
    const value = own(setting);
    if (value !== '') {
      args.push(flag, value);
    }
  }
  return { command: own('path') || 'millwright', args };
}

// own returns a setting of the user, never one of a workspace.
function own(name: string): string {
  const found = workspace.getConfiguration('millwright').inspect<string>(name);
  return found?.globalValue ?? found?.defaultValue ?? '';
}

function options(): LanguageClientOptions {
  return {
    documentSelector: patterns.map((pattern) => ({ scheme: 'file', pattern })),
    diagnosticCollectionName: 'millwright',
  };
}
