// Conversations in IndexedDB, one record each. Where the browser denies it (some private windows), nothing is kept, and the
// page says so.
// SPDX-License-Identifier: Apache-2.0
import type { Conversation } from "./conversation";

const STORE = "conversations";
let opened: Promise<IDBDatabase> | null = null;

function open(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("sluice", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("another tab holds an older version of the page"));
  });
  return opened;
}

async function perform<T>(mode: IDBTransactionMode, make: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const transaction = (await open()).transaction(STORE, mode);
  const request = make(transaction.objectStore(STORE));
  transaction.commit(); // the page may be gone before it would by itself
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
  });
}

export const loadAll = (): Promise<Conversation[]> => perform("readonly", (store) => store.getAll() as IDBRequest<Conversation[]>);
export const load = (id: string): Promise<Conversation | undefined> => perform("readonly", (store) => store.get(id) as IDBRequest<Conversation | undefined>);
export const put = (conversation: Conversation): Promise<unknown> => perform("readwrite", (store) => store.put(conversation));
export const remove = (id: string): Promise<unknown> => perform("readwrite", (store) => store.delete(id));
