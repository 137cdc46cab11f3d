import manifest from '../../package.json' with { type: 'json' }
import { shellWord } from '../text.ts'
import type { Globals } from './config-file.ts'

/** How the program names itself to servers. */
export const USER_AGENT = `admin-mirror/${manifest.version}`

/** ` --config FILE` as it was named, or nothing for the default: for the end of commands that users paste. */
export function typedConfig({ config }: Pick<Globals, 'config'>): string {
  return config === undefined ? '' : ` --config ${shellWord(config)}`
}
