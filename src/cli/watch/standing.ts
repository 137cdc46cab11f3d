import type { StandingTrouble } from '../../ping/pings.ts'
import type { Status } from '../../report/status.ts'

/** The lists that earlier processes left in trouble, for pings. */
export function standingTroubles({ jobs }: Pick<Status, 'jobs'>): StandingTrouble[] {
  return jobs.flatMap((job) => {
    const code = codeOf(job)
    if (!job.configured || code === null) return []
    const { organization_id: organizationId, organization, collection, held_since: held } = job
    return {
      organizationId,
      organization,
      collection,
      code,
      waitsForSomebody: held !== null || job.removals_held > 0,
      endsByRefresh: job.failing_since === null || job.failing_by === 'refresh',
    }
  })
}

function codeOf(job: Status['jobs'][number]): string | null {
  if (job.held_since !== null) return 'UNAUTHORIZED'
  if (job.removals_held > 0) return 'REMOVALS_HELD'
  return job.failing_since === null ? null : (job.failing_code ?? 'INTERNAL')
}
