/* What Python and the engine tell each other; regard/native/library.py has the same structures. */

#ifndef REGARD_ENGINE_H
#define REGARD_ENGINE_H

#include <stdint.h>

#define INTERFACE 10 /* raised when this file changes: an old library must not meet new Python */

extern int regard_threads; /* that share the work of a search */

/* A linear map y = x Wᵀ + b, its weights laid out in panels (products.h). */
typedef struct {
    int32_t inputs;
    int32_t outputs;
    const void *panels;
    const float *scale; /* of each output, if the panels hold whole numbers of eight bits; NULL: they hold floats */
    const float *bias;  /* NULL: none */
} Linear;

/* A layer norm; weight NULL: there is none here. */
typedef struct {
    const float *weight;
    const float *bias;
} Norm;

/* A layer of either stack; an encoder's has no cross-attention. */
typedef struct {
    Linear query_key_value;
    Linear self_output;
    Linear cross_query;
    Linear cross_key_value;
    Linear cross_output;
    Linear inner;
    Linear outer;
    Norm self_norm;
    Norm cross_norm;
    Norm feed_forward_norm;
} Layer;

/* An encoder or a decoder. */
typedef struct {
    int32_t layers;
    int32_t heads;
    int32_t d_model;
    int32_t d_k;
    int32_t d_v;
    int32_t d_ff;
    int32_t pre_norm;
    int32_t positions; /* rows of `position`; past the last one that one serves on */
    float epsilon;     /* of layer norms */
    float scale;       /* of embeddings */
    const Layer *layer;
    Norm last_norm;
    const float *embedding; /* (V, d_model) */
    const float *position;  /* (positions, d_model) */
} Stack;

/* One step of a search: rows are hypotheses, `beams` of each sentence. */
typedef struct {
    int32_t sentences;
    int32_t beams;
    int32_t past;              /* positions before this one */
    int32_t count;             /* of the likeliest tokens that are wanted */
    const int32_t *tokens;     /* (rows) the newest token of each */
    const int32_t *sentence;   /* (sentences) which sentence of the batch this is */
    const int64_t *starts;     /* (batch) where a sentence's keys and values begin in a layer's part of `memory` */
    const int32_t *lengths;    /* (batch) of the sources */
    const float *memory;       /* (layers, memory_size) keys and values of the sources */
    int64_t memory_size;
    float *const *kept;        /* (past + 1) keys and values of each step, (layers, kept_rows[t], H·(d_k + d_v)) */
    const int32_t *kept_rows;  /* (past + 1) */
    const int32_t *ancestors;  /* (past, rows) the row of step t that a hypothesis comes from */
    const uint8_t *at_limit;   /* (sentences) whether only the end token may follow */
    const uint8_t *allowed;    /* (batch, output.outputs) which outputs a sentence may use; NULL: all */
    float *scores;             /* (rows, count) log-probabilities, best first */
    int32_t *best;             /* (rows, count) tokens */
} Step;

/* The end of a residual block in training. */
typedef struct {
    int32_t rows;
    int32_t width;
    const int16_t *bits; /* (rows, width) random, for dropout; NULL: none */
    int32_t bound;       /* bits below it drop their element */
    float scale;         /* of elements that stay */
    float epsilon;
    const float *weight; /* (width) the norm's */
    const float *bias;
} Residual;

/* Where the rows of a tensor (batch, heads, positions, width) are: floats from one sentence, head, position to the next. */
typedef struct {
    const float *start;
    int64_t sentence;
    int64_t head;
    int64_t position;
} Rows;

/* Attention in training. What it writes lies as (batch, positions, heads, width), with nothing between. */
typedef struct {
    int32_t batch;
    int32_t heads;
    int32_t queries;
    int32_t keys;
    int32_t d_k;
    int32_t d_v;
    int32_t causal;         /* each query sees the keys up to its own position */
    const uint8_t *allowed; /* (batch, keys) which keys may be looked at; NULL: all */
    Rows query;
    Rows key;
    Rows value;
} Attention;

/* The loss of all tokens, and its gradients. */
typedef struct {
    int32_t tokens;
    int32_t d_model; /* a multiple of a panel */
    int32_t vocabulary; /* rows of weight: all of the vocabulary's or some of them */
    int32_t drawn;   /* rows from this one on were drawn to stand for others as well */
    int32_t chunk;   /* tokens whose logits are held at a time */
    int32_t passes;  /* 1, or 2 that shall agree: hidden has the one's tokens, then the other's */
    float stands_for; /* how many rows each drawn one stands for */
    float kept;      /* 1 - ε */
    float uniform;   /* ε/V, V the whole vocabulary's; 0: somebody else sees to it */
    float consistency; /* what the divergence of two passes counts, in both directions */
    const float *hidden;    /* (passes, tokens, d_model) */
    const int64_t *targets; /* (tokens) */
    const float *factors;   /* (tokens, and PANEL more) what each token's loss counts, with one pass; NULL: all count 1 */
    const float *weight;    /* (vocabulary, d_model) */
    float *hidden_grad;     /* (passes, tokens, d_model) zeros, to be added to; NULL: not wanted */
    float *weight_grad;     /* (vocabulary, d_model) to be added to; NULL: not wanted */
    double *sums; /* (4) to be added to: -log p of the targets, log Σ e^logit, all logits, both passes' divergences */
} Loss;

/* The weights of a layer in training, each as torch has it; an encoder's has no cross-attention. */
typedef struct {
    const float *query_key_value;
    const float *self_output;
    const float *cross_query;
    const float *cross_key_value;
    const float *cross_output;
    const float *inner;
    const float *inner_bias;
    const float *outer;
    const float *outer_bias;
    Norm self_norm;
    Norm cross_norm;
    Norm feed_forward_norm;
} TrainedLayer;

/* A model in training: the paper's, with norms behind residual sums. */
typedef struct {
    int32_t encoder_layers;
    int32_t decoder_layers;
    int32_t heads;
    int32_t d_model;
    int32_t d_k;
    int32_t d_v;
    int32_t d_ff;
    int32_t vocabulary;
    float epsilon; /* of layer norms */
    float scale;   /* of embeddings */
    const TrainedLayer *encoder;
    const TrainedLayer *decoder;
    const float *source_embedding; /* (vocabulary, d_model) */
    const float *target_embedding;
    const float *output;           /* of the tokens that may be said: see Lesson */
    const float *position; /* (positions, d_model) */
    const float *weights;  /* where the memory begins that holds all weights */
} Trained;

/* What a sentence's dropout is drawn by, which depends on its batch and not on what else is learned from. */
typedef struct {
    uint64_t seed;       /* the batch's */
    int64_t first[2][2]; /* by side (source, target) and pass: the number of its first row among the batch's */
} Draws;

/* What is dropped at places of one kind. */
typedef struct {
    int32_t bound; /* random bits below it drop a number */
    int32_t drops; /* whether anything is dropped */
    float scale;   /* of numbers that stay */
} Dropping;

/* What is learned from: some sentences with their translations, one after the other without padding. */
typedef struct {
    int32_t sentences;
    int32_t threads;
    int32_t rows;   /* target tokens that a thread works on at a time, about */
    int32_t chunk;  /* of them whose logits are held at a time */
    int32_t passes; /* 1, or 2 that shall agree */
    const int32_t *source_lengths;
    const int32_t *target_lengths;
    const int32_t *source;    /* tokens */
    const int32_t *target;    /* tokens that are read: from the start token on */
    const int64_t *following; /* tokens that are to be said: up to the end token */
    const Draws *draws;       /* (sentences) */
    const float *factors;     /* (sentences) what the loss of each counts, with one pass; NULL: all count 1 */
    const int32_t *ends;      /* (threads) each takes the sentences from the end of the one before to its own */
    int32_t outputs;          /* rows of the model's output, to which `following` counts */
    int32_t drawn;            /* and of these, as in Loss */
    float stands_for;
    Dropping dropping;        /* at the two inputs and in what sub-layers add */
    Dropping inner_dropping;  /* in feed-forward networks, behind the activation */
    Dropping word_dropping;   /* of embeddings; `scale` does not matter */
    float smoothing;          /* ε */
    float consistency;
    float *const *gradients; /* (threads) laid out as the weights are, to be added to; NULL: not wanted */
    float *const *output_gradients; /* (threads) of the model's output, if it is not among the weights; NULL: it is */
    double *sums;            /* (threads, 4) as in Loss, to be added to */
} Lesson;

#endif
