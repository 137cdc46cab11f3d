import { Argument, type Command } from 'commander'
import { helpText } from '../help.ts'

const NAME = 'completion'

/** What a file's name follows. */
const BEFORE_A_FILE = new Set(['--config', '--database', '--from', '--output', '--write-config', 'snapshot'])

/** The library's `ShellCompDirectiveDefault`. */
const SHELL_COMPLETES_FILES = 0

/** The library's script for bash lacks the option by which that directive works. */
const BASH_COMPLETES_FILES = 'complete -o default -F __admin_mirror_complete admin-mirror\n'

/**
 * Defines `completion`, which prints a script for a shell, and the hidden `complete`, which that script calls. The library is
 * loaded only where one of them is typed; else `completion` only stands in the list of commands.
 */
export async function defineCompletion(program: Command, argv: readonly string[]): Promise<void> {
  if (argv.some((word) => word === NAME || word === 'complete')) {
    const { default: addCompletion } = await import('@bomb.sh/tab/commander')
    const completing = addCompletion(program, { completionCommandName: NAME })
    // The library has the shell offer no files, whatever is completed.
    if (BEFORE_A_FILE.has(argv.at(-2) ?? ''))
      Object.defineProperty(completing, 'directive', { get: () => SHELL_COMPLETES_FILES, set: () => {} })
  } else program.command(NAME).addArgument(new Argument('<shell>'))
  program.commands
    .find((command) => command.name() === NAME)
    ?.description('print the script by which a shell completes commands and options')
    .helpOption('-h, --help', 'show help')
    .addHelpText('after', helpText(NAME))
    .exitOverride()
    .hook('postAction', (_, { args: [shell] }) => {
      if (shell === 'bash') program.configureOutput().writeOut?.(BASH_COMPLETES_FILES)
    })
}
