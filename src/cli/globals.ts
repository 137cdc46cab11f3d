import { shellWord } from '../text.ts'

/** The options that every command has. */
export interface Globals {
  /** The file that the option names, or else the environment; neither: the default. */
  config?: string
  logLevel: string
  /** Null: readable on a terminal, else JSON. */
  logFormat?: 'json' | 'pretty'
  quiet?: boolean
}

/** ` --config FILE` as it was named, or nothing for the default: for the end of commands that users paste. */
export function typedConfig({ config }: Pick<Globals, 'config'>): string {
  return config === undefined ? '' : ` --config ${shellWord(config)}`
}
