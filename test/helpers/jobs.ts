import type { Collection, Job } from '../../src/sync/types.ts'

export const ACME = { id: '7f3c0f1e-52c7-4a86-9d0b-3c4a5f6b7c8d', name: 'acme' }
export const GLOBEX = { id: '0b9f4f6e-8a55-4b0e-9f59-0d7c2f0d9a11', name: 'globex' }

/** The orders of acme, or what is said instead. */
export function jobOf(collection: Partial<Collection> = {}, organization: Job['organization'] = ACME): Job {
  const name = collection.name ?? 'orders'
  return {
    organization,
    collection: {
      name,
      path: `/api/v1/admin/${name}`,
      key: ['id'],
      filters: {},
      history: true,
      ignore: [],
      total: 'check',
      newest: 'auto',
      ...collection,
    },
  }
}
