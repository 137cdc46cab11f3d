import fs from 'node:fs'
import path from 'node:path'
import { expect, it } from 'vitest'
import { checkReadable } from '../../src/check/configured.ts'
import { mustRun } from '../helpers/system.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

it.each<[mode: number, tokens: string[], warns: boolean]>([
  [0o644, ['acme'], true],
  [0o604, ['acme', 'globex'], true],
  [0o640, ['acme'], false],
  [0o600, ['acme'], false],
  [0o644, [], false],
])('a configuration with mode %o and tokens of %j is warned of: %s', (mode, literalTokens, warns) => {
  const file = path.join(tempFolder(), "it's here.yaml")
  fs.writeFileSync(file, '')
  fs.chmodSync(file, mode)

  const findings = checkReadable({ file, literalTokens })

  expect(findings).toHaveLength(Number(warns))
  if (!warns) return
  const [, command = ''] = /^type: (.*?); or /.exec(findings[0]?.cure ?? '') ?? []
  mustRun('sh', '-c', command)
  expect(fs.statSync(file).mode & 0o007).toBe(0)
})
