/* Native methods of Tag.java. */

#include "kcrf_runtime.h"

#include <jni.h>
#include <stdlib.h>

static void *failed(JNIEnv *env, const char *message)
{
    (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/IllegalArgumentException"), message);
    return NULL;
}

JNIEXPORT jlong JNICALL Java_Tag_open(JNIEnv *env, jclass own, jstring path)
{
    kcrf_error error;
    const char *name = (*env)->GetStringUTFChars(env, path, NULL);
    kcrf_model *model = kcrf_open(name, &error);
    (void)own;
    (*env)->ReleaseStringUTFChars(env, path, name);
    return (jlong)(intptr_t)(model ? model : failed(env, error.text));
}

JNIEXPORT jint JNICALL Java_Tag_columns(JNIEnv *env, jclass own, jlong model)
{
    (void)env, (void)own;
    return (jint)kcrf_column_count((const kcrf_model *)(intptr_t)model);
}

JNIEXPORT jobjectArray JNICALL Java_Tag_labels(JNIEnv *env, jclass own, jlong handle, jobjectArray texts)
{
    const kcrf_model *model = (const kcrf_model *)(intptr_t)handle;
    jsize count = (*env)->GetArrayLength(env, texts), T = count / (jsize)kcrf_column_count(model);
    kcrf_text *cells = malloc(((size_t)count + 1) * sizeof *cells);
    kcrf_tagger *tagger = cells ? kcrf_tagger_new(model) : NULL; /* keep one for each thread where speed matters */
    jobjectArray out = NULL;
    (void)own;
    if (!tagger) {
        free(cells);
        return failed(env, "out of memory");
    }
    for (jsize k = 0; k < count; k++) {
        jbyteArray text = (*env)->GetObjectArrayElement(env, texts, k);
        cells[k].text = (const char *)(*env)->GetByteArrayElements(env, text, NULL);
        cells[k].size = (size_t)(*env)->GetArrayLength(env, text);
        (*env)->DeleteLocalRef(env, text);
    }
    const int32_t *best = kcrf_set_columns(tagger, cells, (size_t)T) ? NULL : kcrf_labels(tagger);
    if (!best)
        failed(env, kcrf_tagger_error(tagger)->text);
    else
        out = (*env)->NewObjectArray(env, T, (*env)->FindClass(env, "java/lang/String"), NULL);
    for (jsize t = 0; out && t < T; t++) {
        jstring name = (*env)->NewStringUTF(env, kcrf_label_name(model, (size_t)best[t]).text);
        (*env)->SetObjectArrayElement(env, out, t, name);
        (*env)->DeleteLocalRef(env, name);
    }
    for (jsize k = 0; k < count; k++) {
        jbyteArray text = (*env)->GetObjectArrayElement(env, texts, k);
        (*env)->ReleaseByteArrayElements(env, text, (jbyte *)cells[k].text, JNI_ABORT);
        (*env)->DeleteLocalRef(env, text);
    }
    kcrf_tagger_free(tagger);
    free(cells);
    return out;
}
