import { type Rule, run } from './sql.ts'

/** Notes which version of the program used the mirror last, for whoever finds a mirror and asks which program it needs. */
export function* noteProgram(version: string): Rule<void> {
  yield* run(
    `
      INSERT INTO sync_settings (name, value) VALUES ('program', :version::text)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE sync_settings.value <> excluded.value
    `,
    { version },
  )
}
