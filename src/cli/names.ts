import manifest from '../../package.json' with { type: 'json' }
import { shellWord } from '../text.ts'
import type { Globals } from './config-file.ts'

/** How the program names itself to servers. */
export const USER_AGENT = `admin-mirror/${manifest.version}`

/** How the program was called, `--config` included, for commands that users paste. */
export function programName({ config }: Pick<Globals, 'config'>): string {
  return config === undefined ? 'admin-mirror' : `admin-mirror --config ${shellWord(config)}`
}
