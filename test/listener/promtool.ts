import { spawnSync } from 'node:child_process'

/** Prometheus' own checker, of Debian's package of that name. */
export const HAS_PROMTOOL = spawnSync('promtool', ['--version'], { stdio: 'ignore' }).status === 0

if (!HAS_PROMTOOL) process.stderr.write('the tests with promtool are skipped: it is not installed\n')
