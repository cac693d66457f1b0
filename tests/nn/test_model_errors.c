/* Every mistake a text can hold is refused with a sentence that names place and remedy. */
#include "check.h"

#include <stdio.h>
#include <string.h>

#include "nn/model.h"
#include "nn/op.h"

#define LOSS "\nloss mean-squared"

/* The message must start with this, so the place is always checked. */
static const struct {
  const char *text, *message;
} mistakes[] = {
    /* the whole */
    {"", "x.net:1:1: the text ends without an input; start with a line like `input 1x28x28`"},
    {"\n# only a comment\n", "x.net:2:1: the text ends without an input"},
    {"input 4\ndense 3\n", "x.net:2:1: the text ends without a loss; add a line like `loss cross-entropy`"},
    {"dense 3\nloss mean-squared",
     "x.net:1:1: dense: a layer before the input; start with a line like `input 1x28x28`"},
    {"loss mean-squared\ninput 4",
     "x.net:2:1: input: a layer after the loss on line 1; move it above that line"},
    {"input 4\ninput 5\ndense 3" LOSS, "x.net:2:1: input: a second input; the first is on line 1"},
    {"input 4\ndense 3" LOSS "\n relu", "x.net:4:2: relu: a layer after the loss on line 3; move it above"},
    {"input 4\nrelu" LOSS,
     "x.net:3:1: there is nothing to train: no line has weights; add one like `dense 10`"},
    {"a: input 4\ndense 3\ndense 5 from a" LOSS, "x.net:2:1: dense: no later line uses this one's output"},

    /* bytes */
    {"input 4\nd\xc3\xa4nse 3" LOSS,
     "x.net:2:2: found the byte 0xc3; outside of comments only plain ASCII is allowed"},
    {"input 4\ndense\x1b[31m 3" LOSS, "x.net:2:6: found the byte 0x1b; outside of comments"},
    {"input 4\rdense 3" LOSS, "x.net:1:8: found the byte 0x0d"},

    /* layers and names */
    {"input 4\n\ndens 3" LOSS, "x.net:3:1: unknown layer 'dens'; did you mean 'dense'?"},
    {"input 4\ndense 3" LOSS "\nbach 5", "x.net:4:1: unknown layer 'bach'; did you mean 'batch'?"},
    {"input 4\ntransformer 3" LOSS,
     "x.net:2:1: there is no layer 'transformer'; the layers are input, dense, conv, pool,"},
    {"input 4\nnn.GroupNorm(2, 4)" LOSS, "x.net:2:1: there is no layer 'nn.GroupNorm'; the layers are"},
    {"input 4\nconv1d 2 3" LOSS, "x.net:2:1: there is no layer 'conv1d'; the layers are"},
    {"input 4\n// the first" LOSS, "x.net:2:1: a comment begins with '#'"},
    {"input 4\ndense 3 relu dropout 0.5" LOSS,
     "x.net:2:14: dense: unexpected 'dropout'; every layer has a line of its own"},
    {"input 4\nactivation" LOSS, "x.net:2:1: unknown layer 'activation'"},
    {"input 4\na: " LOSS, "x.net:2:4: the layer is missing; it is one of input, dense,"},
    {"input 4\na: loss mean-squared", "x.net:2:4: only layers have names, and 'loss' is none"},
    {"input 4\n: dense 3" LOSS,
     "x.net:2:1: ':' is no name for a line; names are letters, digits, '_' and '-'"},
    {"input 4\n2a: dense 3" LOSS, "x.net:2:1: '2a:' is no name for a line"},
    {"input 4\na:dense 3" LOSS, "x.net:2:1: a space is missing behind the ':' of 'a:dense'"},
    {"input 4\nearly-stop:3" LOSS, "x.net:2:1: unknown layer 'early-stop:3'; did you mean 'early-stop'?"},
    {"input 4\ndense:3" LOSS, "x.net:2:1: unknown layer 'dense:3'; write `dense 3`"},
    {"input 4\na.b: dense 3" LOSS, "x.net:2:1: 'a.b:' is no name for a line"},
    {"input 4\nrelu: dense 3" LOSS, "x.net:2:1: 'relu' is a word of the language and cannot be a name"},
    {"input 4\nfrom: dense 3" LOSS, "x.net:2:1: 'from' is a word of the language and cannot be a name"},
    {"a: input 4\n  a: dense 3" LOSS, "x.net:2:3: the name 'a' is already taken by line 1"},
    {"input 4\nabcdefghijklmnopqrstuvwxyz0123456: dense 3" LOSS,
     "x.net:2:1: the name 'abcdefghijklmnopqrstuvwxyz0123456' is longer than 32 characters"},
    {"input 4\ndense 3 from b\nb: dense 3" LOSS,
     "x.net:2:14: dense: no line above is named 'b'; a name is given as in"},
    {"left: input 4\ndense 4\nadd lefd" LOSS,
     "x.net:3:5: add: no line above is named 'lefd'; did you mean 'left'?"},
    {"input 4\ndense 3 from" LOSS,
     "x.net:2:13: dense: expected the name of a line above, found the end of the line"},

    /* input */
    {"input",
     "x.net:1:6: input: expected a shape such as 784, 1x28x28 or `sequence 20x8`, of whole numbers from 1 to "
     "2,147,483,648, found the end of the line"},
    {"input 0", "x.net:1:7: input: expected a shape such as 784"},
    {"input -4", "x.net:1:7: input: expected a shape such as 784"},
    {"input 28x28", "x.net:1:7: input: two sizes are not enough for an image; write `input sequence 28x28` "
                    "or `input 1x28x28`"},
    {"input 1x28x28x3", "x.net:1:7: input: expected a shape such as 784"},
    {"input 1x28x", "x.net:1:7: input: expected a shape such as 784"},
    {"input 3000000000", "x.net:1:7: input: expected a shape such as 784"},
    {"input 1x65536x65536",
     "x.net:1:7: input: 1x65536x65536 has more values than the limit of 2,147,483,648"},
    {"input 2147483648x2147483648x2147483648",
     "x.net:1:7: input: 2147483648x2147483648x2147483648 has more values"},
    {"input 4 5", "x.net:1:9: input: expected the end of the line, found '5'"},
    {"input 4 relu", "x.net:1:9: input: expected the end of the line, found 'relu'"},
    {"input sequence 20", "x.net:1:16: input: expected STEPSxFEATURES such as 20x8, found '20'"},
    {"input tokens 20x5",
     "x.net:1:14: input: expected the number of tokens in a sample, a whole number from 1 to "
     "2,147,483,647, found '20x5'"},
    {"input 784 carry",
     "x.net:1:11: input: only a text can continue from batch to batch: carry needs `input tokens N`"},
    {"input sequence 5x4 carry", "x.net:1:20: input: only a text can continue from batch to batch"},

    /* dense and what is common to layers */
    {"input 4\ndense" LOSS, "x.net:2:6: dense: expected the number of outputs, a whole number from 1 to "
                            "2,147,483,647, found the end of the line"},
    {"input 4\ndense ten" LOSS, "x.net:2:7: dense: expected the number of outputs, a whole number from 1 to "
                                "2,147,483,647, found 'ten'"},
    {"input 4\ndense 0" LOSS, "x.net:2:7: dense: expected the number of outputs"},
    {"input 4\ndense 99999999999999999999" LOSS, "x.net:2:7: dense: expected the number of outputs"},
    {"input 4\ndense 3 rulu" LOSS, "x.net:2:9: dense: unexpected 'rulu'; did you mean 'relu'?"},
    {"input 4\ndense 3 stride 2" LOSS, "x.net:2:9: dense: unexpected 'stride'; here can stand: the end of "
                                       "the line, no-bias, init, from, an activation"},
    {"input 4\ndense 3 relu tanh" LOSS, "x.net:2:14: dense: a second activation; give it a line of its own"},
    {"input 4\nrelu tanh" LOSS,
     "x.net:2:6: relu: unexpected 'tanh'; here can stand: the end of the line, from"},
    {"input 4\ndense 3 no-bias no-bias" LOSS, "x.net:2:17: dense: 'no-bias' is given twice"},
    {"input 4\ndense 3 init" LOSS,
     "x.net:2:13: dense: the initialiser is missing; it is one of zero, normal,"},
    {"input 4\ndense 3 init auto" LOSS,
     "x.net:2:14: dense: unknown initialiser 'auto'; it is one of zero, normal,"},
    {"input 4\ndense 3 init he_normal" LOSS,
     "x.net:2:14: dense: unknown initialiser 'he_normal'; write `init he`"},
    {"input 4\ndense 3 init glorot_uniform" LOSS,
     "x.net:2:14: dense: unknown initialiser 'glorot_uniform'; write `init xavier`"},
    {"input 4\ndense 3 init uniform" LOSS,
     "x.net:2:21: dense: expected the largest value, a number above 0 and at most "
     "1e9, found the end of the line"},
    {"input 4\ndense 3 init normal 0" LOSS,
     "x.net:2:21: dense: expected the standard deviation, a number above 0"},
    {"input 4\ndense 3 init normal 1e-60" LOSS, "x.net:2:21: dense: expected the standard deviation"},
    {"input 4\ndense 3 init normal nan" LOSS, "x.net:2:21: dense: expected the standard deviation"},
    {"input 65536\ndense 65536" LOSS,
     "x.net:2:1: dense: with this layer the net has more weights than the limit of 2,147,483,648"},
    {"input 1\ndense 1073741824 no-bias\ndense 1 no-bias\ndense 1" LOSS,
     "x.net:4:1: dense: with this layer the net has more"},
    {"input tokens 20\ndense 3" LOSS, "x.net:2:1: dense: the line above gives tokens 20, which are numbers "
                                      "of words; put a line like `embed 10000 200` "
                                      "between"},
    {"t: input tokens 20\nembed 5 5\nadd t" LOSS,
     "x.net:3:5: add: 't' gives tokens 20, which are numbers of words"},
    {"t: input tokens 20\nembed 5 5\nflatten from t" LOSS, "x.net:3:14: flatten: 't' gives tokens 20"},

    /* images */
    {"input 784\nconv 20 5x5" LOSS, "x.net:2:1: conv: needs an image, but the line above gives 784; an "
                                    "earlier line like `reshape 1x28x28` can make one"},
    {"a: input sequence 5x5\ndense 3\npool max 2x2 from a" LOSS,
     "x.net:3:19: pool: needs an image, but 'a' gives sequence 5x5"},
    {"input 1x8x8\nconv 5 5x5\nconv   50 5x5 tanh" LOSS,
     "x.net:3:11: conv: a 5x5 window does not fit into an image of 4x4 after padding 0; make the window "
     "smaller or add "
     "`pad 1`"},
    {"input 1x28x28\nconv 5 29x29" LOSS,
     "x.net:2:8: conv: a 29x29 window does not fit into an image of 28x28 "
     "after padding 0; make the window smaller or add `pad 1`"},
    {"input 28x28x1\nconv 5 5x5" LOSS,
     "x.net:2:8: conv: a 5x5 window does not fit into an image of 28x1 after padding 0; make the window "
     "smaller; channels come first: `input 1x28x28`"},
    {"input 1x4x4\nconv 5 3x7 pad 1x0" LOSS, "x.net:2:8: conv: a 3x7 window does not fit into an image of "
                                             "4x4 after padding 1x0; make the window smaller or add "
                                             "`pad 1x2`"},
    {"input 1x1x1\npool max 2x2" LOSS, "x.net:2:10: pool: a 2x2 window does not fit into an image of 1x1 "
                                       "after padding 0; make the window smaller or add `pad 1`"},
    {"input 1x8x8\nconv 5" LOSS, "x.net:2:7: conv: expected a window such as 5x5, of whole numbers from 1 to "
                                 "2,147,483,648, found the end of the line"},
    {"input 1x8x8\nconv 5 5" LOSS, "x.net:2:8: conv: expected a window such as 5x5, found '5'"},
    {"input 1x8x8\nconv 5x5 5" LOSS, "x.net:2:6: conv: expected the number of channels"},
    {"input 1x8x8\nconv 5 3x3 stride 0" LOSS,
     "x.net:2:19: conv: expected a stride such as 2 or 2x1, of whole numbers"},
    {"input 1x8x8\nconv 5 3x3 stride 1x1x1" LOSS,
     "x.net:2:19: conv: expected a stride such as 2 or 2x1, found '1x1x1'"},
    {"input 1x8x8\nconv 5 3x3 stride 1 stride 1" LOSS, "x.net:2:21: conv: 'stride' is given twice"},
    {"input 1x8x8\nconv 5 4x3 pad same" LOSS,
     "x.net:2:16: conv: `pad same` needs a window of odd sizes, found 4x3"},
    {"input 1x8x8\nconv 5 3x3 pad 3" LOSS, "x.net:2:12: conv: a padding of 3x3 is not smaller than the "
                                           "window of 3x3; windows at the border would see nothing"},
    {"input 1x8x8\nconv 2147483647 3x3" LOSS, "x.net:2:17: conv: its output has more values than the limit"},
    {"input 1x1x2147483647\nconv 1 2147483648x2147483648 pad 2147483647" LOSS,
     "x.net:2:8: conv: its output has more"},
    {"input 1x8x8\npool 2x2" LOSS,
     "x.net:2:6: pool: unknown kind of pooling '2x2'; write a line like `pool max 2x2`"},
    {"input 1x8x8\npool middle 2x2" LOSS,
     "x.net:2:6: pool: unknown kind of pooling 'middle'; it is one of max, min, average"},
    {"input 1x8x8\npool avrage 2x2" LOSS,
     "x.net:2:6: pool: unknown kind of pooling 'avrage'; did you mean 'average'?"},
    {"input 1x8x8\npool max 2x2 pad same" LOSS, "x.net:2:18: pool: expected a padding such as 2 or 2x1"},
    {"input 1x8x8\npool max 2x2 no-bias" LOSS,
     "x.net:2:14: pool: unexpected 'no-bias'; here can stand: the end of the"},
    {"input 8\nglobal-pool max" LOSS, "x.net:2:1: global-pool: needs an image, but the line above gives 8"},
    {"input 1x8x8\nglobal-pool" LOSS,
     "x.net:2:12: global-pool: the kind of pooling is missing; it is one of max,"},
    {"input 1x8x8\nconv 3 3x3 softmax" LOSS,
     "x.net:2:12: conv: softmax needs a vector or a sequence, found 3x6x6"},
    {"input 1x8x8\nsoftmax" LOSS, "x.net:2:1: softmax: needs a vector or a sequence, found 1x8x8"},

    /* sequences */
    {"input 8\nembed 10 4" LOSS,
     "x.net:2:1: embed: needs tokens, but the line above gives 8; only `input tokens N` gives them"},
    {"input tokens 8\nembed 10" LOSS, "x.net:2:9: embed: expected the number of values of a word"},
    {"input tokens 8\nembed 2000000000 2" LOSS, "x.net:2:1: embed: with this layer the net has more weights"},
    {"input tokens 2147483647\nembed 2 2" LOSS,
     "x.net:2:1: embed: sequence 2147483647x2 has more values than the limit"},
    {"input 8\nlstm 4" LOSS,
     "x.net:2:1: lstm: needs a sequence, but the line above gives 8; `repeat T` or `reshape "
     "sequence TxF` can make one"},
    {"input sequence 5x4\nlstm 4 layers 0" LOSS,
     "x.net:2:15: lstm: expected the number of layers, a whole number from 1 to 32, found '0'"},
    {"input sequence 5x4\ngru 4 layers 33" LOSS, "x.net:2:14: gru: expected the number of layers"},
    {"input sequence 5x4\nlstm 4 bidirectionl" LOSS,
     "x.net:2:8: lstm: unexpected 'bidirectionl'; did you mean 'bidirec"},
    {"input sequence 5x4\nrnn 4 sigmoid" LOSS,
     "x.net:2:7: rnn: its activation is tanh or relu; put 'sigmoid' on a line of its own"},
    {"input sequence 1x1\nlstm 2147483647" LOSS, "x.net:2:1: lstm: with this layer the net has more weights"},
    {"input sequence 1x1\nrnn 2147483647 bidirectional" LOSS, "x.net:2:1: rnn: its output has more values"},
    {"\ninput tokens 5 carry\nembed 4 4\nlstm 4 last bidirectional" LOSS,
     "x.net:4:13: lstm: a net that carries its state cannot read backwards; leave out `bidirectional` here "
     "or `carry` on "
     "line 2"},
    {"input sequence 5x4\nrepeat 3" LOSS,
     "x.net:2:1: repeat: needs a vector, but the line above gives sequence 5x4"},
    {"input 65536\nrepeat 65536\ndense 1" LOSS,
     "x.net:2:1: repeat: sequence 65536x65536 has more values than the limit"},
    {"input 8\nreshape 1x3x3" LOSS,
     "x.net:2:9: reshape: 1x3x3 has 9 values, but the line above gives 8 with 8; they must be equal"},
    {"input 1000x1000x1\nreshape sequence 1000x999" LOSS,
     "x.net:2:18: reshape: sequence 1000x999 has 999,000 values, but the line above gives 1000x1000x1 with "
     "1,000,000"},
    {"input 784\nreshape 28x28" LOSS,
     "x.net:2:9: reshape: two sizes are not enough for an image; write `reshape sequence 28x28` or `reshape "
     "1x28x28`"},
    {"input 8\nreshape" LOSS, "x.net:2:8: reshape: expected a shape such as 784"},

    /* tables */
    {"input 8\nlookup" LOSS, "x.net:2:7: lookup: expected the number of rows, a whole number from 1 to "
                             "16,777,216, found the end of the line"},
    {"input 8\nlookup 16777217 4 of 2" LOSS, "x.net:2:8: lookup: expected the number of rows"},
    {"input 8\nlookup 0 4 of 2" LOSS, "x.net:2:8: lookup: expected the number of rows"},
    {"input 8\nlookup 10 of 2" LOSS, "x.net:2:11: lookup: expected the number of values of a row"},
    {"input 8\nlookup 10 4" LOSS, "x.net:2:12: lookup: expected `of` and how many of the input's last values "
                                  "are numbers of rows, found the end of the line"},
    {"input 8\nlookup 10 4 tanh" LOSS, "x.net:2:13: lookup: expected `of` and how many of the input's last "
                                       "values are numbers of rows, found 'tanh'"},
    {"input 8\nlookup 10 4 of 0" LOSS, "x.net:2:16: lookup: expected how many of the input's last values are "
                                       "numbers of rows, a whole number from 1 to 2,147,483,647, found '0'"},
    {"input 8\nlookup 10 4 of 9" LOSS,
     "x.net:2:16: lookup: the input has 8 values, so not 9 of them can be numbers of rows"},
    {"input 8\nlookup 10 4 of 2 no-bias" LOSS,
     "x.net:2:18: lookup: unexpected 'no-bias'; here can stand: the end of the line, init, from, an"},
    {"input sequence 5x4\nlookup 10 4 of 2" LOSS,
     "x.net:2:1: lookup: needs a vector, but the line above gives sequence 5x4; a line like `input 22` gives "
     "one"},
    {"input tokens 5\nlookup 10 4 of 2" LOSS, "x.net:2:1: lookup: the line above gives tokens 5"},
    {"\ninput 8\ndense 8\nlookup 10 4 of 2" LOSS,
     "x.net:4:1: lookup: reads numbers of rows from the data itself, not from the line above; put it "
     "directly below the input on line 2"},
    {"input 8\na: dense 8\nlookup 10 4 of 2 from a" LOSS,
     "x.net:3:23: lookup: reads numbers of rows from the data itself, not from 'a'"},
    {"input 8\nlookup 16777216 200 of 2" LOSS, "x.net:2:1: lookup: with this layer the net has more weights"},
    {"input 2000000000\nlookup 1 2 of 2000000000" LOSS,
     "x.net:2:1: lookup: its output has more values than the limit"},

    /* the rest of the layers */
    {"input 8\ndropout 1" LOSS,
     "x.net:2:9: dropout: expected the share to drop, a number from 0 to below 1, found '1'"},
    {"input 8\ndropout -0.1" LOSS, "x.net:2:9: dropout: expected the share to drop"},
    {"input 8\ndropout 0.99999999999" LOSS, "x.net:2:9: dropout: expected the share to drop"},
    {"input 8\ndropout half" LOSS, "x.net:2:9: dropout: expected the share to drop"},
    {"input 8\nbatchnorm 3" LOSS,
     "x.net:2:11: batchnorm: unexpected '3'; here can stand: the end of the line, batch, from, an"},
    {"input 8\nbatchnorm batch batch" LOSS, "x.net:2:17: batchnorm: 'batch' is given twice"},
    {"input 8\ndense 8 batch" LOSS, "x.net:2:9: dense: unexpected 'batch'"},
    {"input 16x32x32\na: batchnorm\nb: conv 16 3x3 pad same stride 2\n\n\n\nadd a" LOSS,
     "x.net:7:5: add: 'a' has the shape 16x32x32, the line above 16x16x16; they must be equal"},
    {"a: input 4\nb: dense 5\nc: dense 4\nadd a from b" LOSS,
     "x.net:4:5: add: 'a' has the shape 4, 'b' 5; they must be equal"},
    {"input 4\nadd" LOSS, "x.net:2:4: add: expected the name of a line above, found the end of the line"},
    {"a: input 4\ndense 4\nadd relu" LOSS, "x.net:3:5: add: no line above is named 'relu'"},
    {"a: input 4\ndense 4\nadd a a" LOSS, "x.net:3:7: add: 'a' is already one of the inputs"},
    {"a: input 4\nadd a" LOSS, "x.net:2:5: add: 'a' is already one of the inputs"},
    {"a: input 4\ndense 4\nadd a stride" LOSS,
     "x.net:3:7: add: unexpected 'stride'; here can stand: the end of the line"},
    {"a: input 1x4x4\nconv 2 3x3\nconcat a" LOSS,
     "x.net:3:8: concat: 'a' has the shape 1x4x4, the line above 2x2x2; they must be equal but for channels "
     "or features"},
    {"a: input 1x4x4\nflatten\nconcat a" LOSS,
     "x.net:3:8: concat: 'a' has the shape 1x4x4, the line above 16"},
    {"a: input 2147483647\nrelu\nconcat a" LOSS,
     "x.net:3:1: concat: its output has more values than the limit"},

    /* loss */
    {"input 4\ndense 3\nloss",
     "x.net:3:5: loss: the loss is missing; it is one of cross-entropy, binary-cross-entropy,"},
    {"input 4\ndense 3\nloss crossentropy",
     "x.net:3:6: loss: unknown loss 'crossentropy'; write `loss cross-entropy`"},
    {"input 4\ndense 3\nloss mse", "x.net:3:6: loss: unknown loss 'mse'; write `loss mean-squared`"},
    {"input 4\ndense 3" LOSS LOSS, "x.net:4:1: loss: already given on line 3"},
    {"input 4\ndense 3\nloss mean-squared delta 1",
     "x.net:3:19: loss: unknown option 'delta'; it is one of sum-steps"},
    {"input 4\ndense 3\nloss huber delta 0",
     "x.net:3:18: loss: expected where the loss turns from square to straight"},
    {"input 4\ndense 3\nloss huber delta 1 delta 2", "x.net:3:20: loss: 'delta' is given twice"},
    {"input 4\ndense 1\n\nloss cross-entropy",
     "x.net:4:1: loss: cross-entropy needs at least 2 classes, but the last layer gives 1; a yes or no takes "
     "binary-cross-entropy"},
    {"input 1x8x8\nconv 10 3x3\nloss cross-entropy",
     "x.net:3:1: loss: cross-entropy needs a vector or a sequence, but the last layer gives 10x6x6; end with "
     "a line like"},
    {"input 1x8x8\nconv 10 3x3" LOSS, "x.net:3:1: loss: mean-squared needs a vector or a sequence"},
    {"input 4\ndense 3\nloss cross-entropy sum-steps",
     "x.net:3:1: loss: sum-steps needs a sequence, but the last layer gives 3"},

    /* optimizer and rate */
    {"input 4\ndense 3\noptimizer" LOSS,
     "x.net:3:10: optimizer: the optimizer is missing; it is one of sgd, momentum,"},
    {"input 4\ndense 3\noptimizer adem" LOSS,
     "x.net:3:11: optimizer: unknown optimizer 'adem'; did you mean 'adam'?"},
    {"input 4\ndense 3\noptimiser adam" LOSS,
     "x.net:3:1: unknown layer 'optimiser'; did you mean 'optimizer'?"},
    {"input 4\ndense 3\noptimizer sgd momentum 0.9" LOSS,
     "x.net:3:15: optimizer: unknown option 'momentum'; write `optimizer momentum momentum 0.9`"},
    {"input 4\ndense 3\noptimizer adam momentum 0.9" LOSS,
     "x.net:3:16: optimizer: unknown option 'momentum'; it is one of "
     "rate, beta1, beta2, eps"},
    {"input 4\ndense 3\noptimizer adam rate -0.1" LOSS,
     "x.net:3:21: optimizer: expected the rate, a number above 0 and at most 1e9, found '-0.1'"},
    {"input 4\ndense 3\noptimizer adam rate 0" LOSS, "x.net:3:21: optimizer: expected the rate"},
    {"input 4\ndense 3\noptimizer adam rate 1e39" LOSS, "x.net:3:21: optimizer: expected the rate"},
    {"input 4\ndense 3\noptimizer adam rate inf" LOSS, "x.net:3:21: optimizer: expected the rate"},
    {"input 4\ndense 3\noptimizer adam rate" LOSS,
     "x.net:3:20: optimizer: expected the rate, a number above 0 and at "
     "most 1e9, found the end of the line"},
    {"input 4\ndense 3\noptimizer adam rate 1 rate 2" LOSS, "x.net:3:23: optimizer: 'rate' is given twice"},
    {"input 4\ndense 3\noptimizer adam beta2 1" LOSS,
     "x.net:3:22: optimizer: expected beta2, a number from 0 to below 1, found '1'"},
    {"input 4\ndense 3\noptimizer adam eps 0" LOSS, "x.net:3:20: optimizer: expected eps, a number above 0"},
    {"input 4\ndense 3\noptimizer adam\nrate 0.1" LOSS,
     "x.net:4:1: the rate stands on the optimizer's line: `optimizer adam rate 0.1`"},
    {"input 4\ndense 3\nrate 0.1" LOSS,
     "x.net:3:1: the rate stands on the optimizer's line: `optimizer sgd rate 0.1`"},

    /* the other settings */
    {"input 4\ndense 3\nschedule linear" LOSS,
     "x.net:3:10: schedule: unknown schedule 'linear'; it is one of constant,"},
    {"input 4\ndense 3\nschedule constant 1" LOSS,
     "x.net:3:19: schedule: expected the end of the line, found '1'"},
    {"input 4\ndense 3\nschedule step from 0" LOSS,
     "x.net:3:20: schedule: expected the first epoch of a lower rate, a "
     "whole number from 1 to 1,000,000,000, found '0'"},
    {"input 4\ndense 3\nschedule step evry 2" LOSS,
     "x.net:3:15: schedule: unknown option 'evry'; did you mean 'every'?"},
    {"input 4\ndense 3\nschedule exponential" LOSS, "x.net:3:21: schedule: expected the factor of an epoch"},
    {"input 4\ndense 3\nschedule cosine to -1" LOSS,
     "x.net:3:20: schedule: expected the last rate, a number from 0"},
    {"input 4\ndense 3\nwarmup -1" LOSS,
     "x.net:3:8: warmup: expected a number of epochs, a number from 0 to 1e9"},
    {"input 4\ndense 3\nwarmup 1 scale 0" LOSS,
     "x.net:3:16: warmup: expected the batch that the rate is meant for"},
    {"input 4\ndense 3\nbatch 0" LOSS,
     "x.net:3:7: batch: expected the samples of a round, a whole number from 1 to 16,777,216, found '0'"},
    {"input 4\ndense 3\nbatch 5\n\nbatch 5" LOSS, "x.net:5:1: batch: already given on line 3"},
    {"input 4\ndense 3\nepochs 1.5" LOSS, "x.net:3:8: epochs: expected the number of epochs"},
    {"input 4\ndense 3\nepochs 5 6" LOSS, "x.net:3:10: epochs: expected the end of the line, found '6'"},
    {"input 4\ndense 3\nseed -1" LOSS,
     "x.net:3:6: seed: expected a seed, a whole number from 0 to 18,446,744,073,709,551,615, found '-1'"},
    {"input 4\ndense 3\nshards 257" LOSS,
     "x.net:3:8: shards: expected the parts of a batch, a whole number from 0 to 256, found '257'"},
    {"input 4\nbatchnorm batch\nshards 2" LOSS,
     "x.net:3:1: shards: 2 shards, but `batchnorm batch` needs a round to be one; leave `batch` out"},
    {"batch 1025\ninput 4\nbatchnorm batch" LOSS,
     "x.net:1:1: batch: 1,025 samples, but `batchnorm batch` takes at most 1,024 at once"},
    {"input 4\ndense 3\nl2 -1" LOSS,
     "x.net:3:4: l2: expected the factor, a number from 0 to 1e9, found '-1'"},
    {"input 4\ndense 3\nclip x" LOSS, "x.net:3:6: clip: expected the largest norm of a gradient"},
    {"input 4\ndense 3\nearly-stop" LOSS,
     "x.net:3:11: early-stop: expected the epochs to wait for a better one"},
    {"input 4\ndense 3\nshuffle lane" LOSS, "x.net:3:9: shuffle:"},
    {"input 4\ndense 3\naugment" LOSS, "x.net:3:8: augment:"},
    {"input 4\ndense 3\naugment turn" LOSS, "x.net:3:9: augment: unknown option 'turn'"},
    {"input 4\ndense 3\naugment flip flip" LOSS, "x.net:3:14: augment: 'flip' is given twice"},
    {"input 4\ndense 3\naugment flip none" LOSS, "x.net:3:14: augment: unknown option 'none'"},
    {"input 4\ndense 3\naugment crop 0" LOSS, "x.net:3:14: augment: expected the pixels to move by"},
    {"input 4\ndense 3\naugment none 4" LOSS, "x.net:3:14: augment: expected the end of the line"},
    {"input 4\ndense 3\nshuffle lanes 4" LOSS, "x.net:3:15: shuffle: expected the end of the line"},
    {"input 4\ndense 3\nclass-weights" LOSS, "x.net:3:14: class-weights: expected 'balanced' or a weight"},
    {"input 4\ndense 3\nclass-weights 1 -1 1" LOSS,
     "x.net:3:17: class-weights: expected 'balanced' or a weight, a number "
     "from 0 to 1e9, found '-1'"},
    {"input 4\ndense 3\nclass-weights 0 0 0" LOSS,
     "x.net:3:20: class-weights: all weights are 0; at least one class"},
    {"input 4\ndense 3\nclass-weights balanced 1" LOSS,
     "x.net:3:24: class-weights: expected the end of the line"},
    {"input 4\ndense 3\nclass-weights balanced" LOSS,
     "x.net:3:1: class-weights: weights of classes need the loss cross-entropy, found mean-squared"},
    {"input 4\ndense 3\nclass-weights 1 2 3 4\nloss cross-entropy",
     "x.net:3:1: class-weights: 4 weights for 3 classes; there must be one for each"},
};

static void refuses(const char *text, size_t length, shoal_status status, const char *message) {
  shoal_model *model = (shoal_model *)1;
  shoal_error err;
  shoal_status found = shoal_model_parse(&model, "x.net", text, length, &err);
  if (found == SHOAL_OK) fail_msg("accepted, but expected: %s\nin:\n%.200s", message, text);
  if (strncmp(err.text, message, strlen(message)) != 0)
    fail_msg("expected: %s\nfound:    %s\nin:\n%.200s", message, err.text, text);
  if (status != SHOAL_OK) assert_int_equal(found, status);
  assert_int_equal(err.status, found);
  assert_null(model);
  assert_int_equal(shoal_model_parse(&model, "x.net", text, length, NULL), found);
}

static void every_mistake_is_named_with_its_place(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
    refuses(mistakes[i].text, strlen(mistakes[i].text), SHOAL_OK, mistakes[i].message);
}

/* Every operation that has a line, in the order of the table, then every activation. */
static void an_unknown_layer_is_answered_with_all_that_there_are(void **state) {
  (void)state;
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "x.net:2:1: there is no layer 'attention'; the layers are ");
  for (uint32_t i = 0; i < shoal_ops_count; i++)
    if (!shoal_ops[i]->is_inner) shoal_text_addf(&text, "%s, ", shoal_ops[i]->word);
  for (int a = 0; a <= SHOAL_ACT_SOFTMAX; a++)
    shoal_text_addf(&text, a > 0 ? ", %s" : "%s", shoal_activation_words[a]);
  static const char net[] = "input 4\nattention 8" LOSS;
  refuses(net, sizeof net - 1, SHOAL_INVALID, text.bytes);
  shoal_text_release(&text);
}

static void a_zero_byte_is_refused_even_in_a_comment(void **state) {
  (void)state;
  refuses("input\0 4", 8, SHOAL_INVALID, "x.net:1:6: found a zero byte; a model is plain text");
  refuses("input 4\n# a\0b", 13, SHOAL_INVALID, "x.net:2:4: found a zero byte");
}

static void what_is_over_a_limit_is_refused(void **state) {
  (void)state;
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "input 4\n");
  for (int i = 0; i < SHOAL_LAYERS_MAX; i++) shoal_text_addf(&text, "tanh\n");
  refuses(text.bytes, text.length, SHOAL_LIMIT, "x.net:1025:1: more than 1,024 layers");

  shoal_text_clear(&text);
  shoal_text_addf(&text, "input 4\ndense 3\n#%33000d\n", 1);
  refuses(text.bytes, text.length, SHOAL_LIMIT, "x.net:3:1: the line is longer than 32,768 characters");

  shoal_text_clear(&text);
  shoal_text_addf(&text, "class-weights");
  for (int i = 0; i < SHOAL_CLASS_WEIGHTS_MAX + 1; i++) shoal_text_addf(&text, " 1");
  refuses(text.bytes, text.length, SHOAL_LIMIT, "x.net:1:2063: class-weights: more than 1,024 weights");

  shoal_text_clear(&text);
  shoal_text_addf(&text, "x: input 4\n");
  for (int i = 1; i <= SHOAL_LAYER_INPUTS_MAX; i++) shoal_text_addf(&text, "n%d: dense 4\n", i);
  shoal_text_addf(&text, "concat x");
  for (int i = 1; i < SHOAL_LAYER_INPUTS_MAX; i++) shoal_text_addf(&text, " n%d", i);
  refuses(text.bytes, text.length, SHOAL_LIMIT, "x.net:18:57: concat: more than 16 inputs");

  shoal_text_clear(&text);
  while (text.length <= SHOAL_MODEL_BYTES_MAX) shoal_text_addf(&text, "# a long story\n");
  refuses(text.bytes, text.length, SHOAL_LIMIT, "x.net:1:1: the text is longer than 1,048,576 bytes");
  shoal_text_release(&text);
}

static void a_long_word_is_shown_in_part(void **state) {
  (void)state;
  shoal_text text;
  shoal_text_init(&text);
  shoal_text_addf(&text, "input 4\ndense %01000d", -7);
  refuses(text.bytes, text.length, SHOAL_INVALID,
          "x.net:2:7: dense: expected the number of outputs, a whole number from 1 to 2,147,483,647, found "
          "'-000000000000000000000000000000000000000...'");
  shoal_text_release(&text);
}

/* What users of Keras and PyTorch write, and the line that was meant, which must be one that can be read. */
static const struct {
  const char *input, *line, *meant;
} foreign[] = {
    {"784", "nn.Linear(784, 10)", "dense 10"},
    {"784", "self.fc1 = torch.nn.Linear(in_features=784, out_features=10, bias=False)", "dense 10 no-bias"},
    {"784", "Dense(128, activation='relu')", "dense 128 relu"},
    {"784", "model.add(layers.Dense(units=128, activation=\"tanh\", input_shape=(784,)))", "dense 128 tanh"},
    {"784", "Dense 128 relu", "dense 128 relu"},
    {"784", "dense 128 activation=relu", "dense 128 relu"},
    {"784", "dense 128, relu", "dense 128 relu"},
    {"784", "dense(128)", "dense 128"},
    {"784", "dense 128 swish", "dense 128 silu"},
    {"784", "gradient_clip_val=1", "clip 1"},
    {"784", "a: Dense(64)", "dense 64"},
    {"784", "Dense(10, activation='softmax')", "dense 10 softmax"},
    {"784", "dense: 10 relu", "dense 10 relu"},
    {"784", "dense relu 10", "dense 10 relu"},
    {"784", "dense 784 128 relu", "dense 128 relu"},
    {"784", "linear 10", "dense 10"},
    {"784", "hidden 128 tanh", "dense 128 tanh"},
    {"784", "nn.Identity()", "identity"},
    {"784", "cross-entropy", "loss cross-entropy"},
    {"784", "epochs: 10", "epochs 10"},
    {"784", "optimizer: adam", "optimizer adam"},
    {"784", "optim adam", "optimizer adam"},
    {"784", "loss: cross-entropy", "loss cross-entropy"},
    {"784", "loss cross entropy", "loss cross-entropy"},
    {"784", "loss softmax", "loss cross-entropy"},
    {"784", "TimeDistributed(Dense(10))", "dense 10"},
    {"784", "Dropout(0.5)", "dropout 0.5"},
    {"784", "transforms.RandomHorizontalFlip()", "augment flip"},
    {"784", "transforms.RandomCrop(32, padding=4)", "augment crop 4"},
    {"784", "BatchNorm1d(784)", "batchnorm"},
    {"784", "BatchNormalization()", "batchnorm"},
    {"784", "nn.LayerNorm(784)", "layernorm"},
    {"784", "ReLU()", "relu"},
    {"784", "x = F.relu(self.fc1(x))", "relu"},
    {"784", "nn.LeakyReLU(negative_slope=0.01)", "leaky-relu"},
    {"784", "x = F.elu(self.fc1(x))", "elu"},
    {"784", "Softmax(dim=1)", "softmax"},
    {"784", "nn.LogSoftmax(dim=1)", "softmax"},
    {"784", "activation relu", "relu"},
    {"784", "Activation('swish')", "silu"},
    {"784", "Activation(tf.nn.swish)", "silu"},
    {"784", "RepeatVector(8)", "repeat 8"},
    {"1x28x28", "nn.Conv2d(1, 20, 5)", "conv 20 5x5"},
    {"1x28x28", "Conv2d(1, 20, kernel_size=(5, 5), stride=(1, 1), groups=1)", "conv 20 5x5"},
    {"1x28x28", "Conv2D(32, 3, kernel_regularizer=regularizers.L2(l2=1e-4))", "conv 32 3x3` and `l2 0.0002"},
    {"1x28x28", "BatchNorm2d(64, eps=1e-05, momentum=0.1, affine=True)", "batchnorm"},
    {"1x28x28", "Conv2d(1, 20, kernel_size=5, stride=2, padding=2)", "conv 20 5x5 stride 2 pad 2"},
    {"1x28x28", "Conv2D(32, (3, 3), padding='same', activation='relu')", "conv 32 3x3 pad same relu"},
    {"1x28x28", "conv 20 5x5 padding=2", "conv 20 5x5 pad 2"},
    {"1x28x28", "conv 20 5 tanh", "conv 20 5x5 tanh"},
    {"1x28x28", "conv 20 3", "conv 20 3x3"},
    {"1x28x28", "conv 20 3 stride 2 pad 1 relu", "conv 20 3x3 stride 2 pad 1 relu"},
    {"1x28x28", "conv 20 5 5 relu", "conv 20 5x5 relu"},
    {"1x28x28", "conv 5x5 20", "conv 20 5x5"},
    {"1x28x28", "conv 20 3x3 same", "conv 20 3x3 pad same"},
    {"1x28x28", "conv: 20 5x5", "conv 20 5x5"},
    {"1x28x28", "conv2d 20 5 relu", "conv 20 5x5 relu"},
    {"1x28x28", "conv2d 1 20 5", "conv 20 5x5"},
    {"1x28x28", "pool max 2", "pool max 2x2"},
    {"1x28x28", "pool max (2, 2)", "pool max 2x2"},
    {"1x28x28", "pool max 2 stride 1", "pool max 2x2 stride 1x1"},
    {"1x28x28", "pool avg 2x2", "pool average 2x2"},
    {"1x28x28", "pool 2x2 max", "pool max 2x2"},
    {"1x28x28", "global-avg-pool", "global-pool average"},
    {"1x28x28", "MaxPool2d(2)", "pool max 2x2"},
    {"1x28x28", "MaxPooling2D(pool_size=(2, 2))", "pool max 2x2"},
    {"1x28x28", "nn.AvgPool2d(kernel_size=2, stride=1)", "pool average 2x2 stride 1x1"},
    {"1x28x28", "GlobalAveragePooling2D()", "global-pool average"},
    {"1x28x28", "nn.AdaptiveAvgPool2d((1, 1))", "global-pool average"},
    {"1x28x28", "Flatten()", "flatten"},
    {"tokens 20", "nn.Embedding(10000, 200)", "embed 10000 200"},
    {"tokens 20", "Embedding(input_dim=1000, output_dim=64)", "embed 1000 64"},
    {"sequence 20x8", "nn.LSTM(8, 64, num_layers=2, batch_first=True)", "lstm 64 layers 2"},
    {"sequence 20x8", "LSTM(64, return_sequences=True)", "lstm 64"},
    {"sequence 20x8", "Bidirectional(LSTM(64))", "lstm 64 bidirectional last"},
    {"sequence 20x8", "GRU(32)", "gru 32 last"},
    {"sequence 20x8", "lstm 20 num_layers 2", "lstm 20 layers 2"},
    {"sequence 20x8", "gru 20 num_layers 2 last", "gru 20 layers 2 last"},
    {"sequence 20x8", "nn.RNN(8, 20, nonlinearity='relu')", "rnn 20 relu"},
    {"784", "loss mse", "loss mean-squared"},
    {"784", "loss mae", "loss mean-absolute"},
    {"784", "loss bce", "loss binary-cross-entropy"},
    {"784", "loss nll", "loss cross-entropy"},
    {"784", "loss categorical_crossentropy", "loss cross-entropy"},
    {"784", "loss='sparse_categorical_crossentropy'", "loss cross-entropy"},
    {"784", "loss nn.CrossEntropyLoss()", "loss cross-entropy"},
    {"784", "criterion = nn.MSELoss()", "loss mean-squared"},
    {"784", "loss smooth_l1", "loss huber"},
    {"784", "optimizer Adam lr=0.001", "optimizer adam rate 0.001"},
    {"784", "optimizer adam lr 0.001", "optimizer adam rate 0.001"},
    {"784", "optimizer adam 0.001", "optimizer adam rate 0.001"},
    {"784", "optimizer = optim.Adam(model.parameters(), lr=1e-3)", "optimizer adam rate 1e-3"},
    {"784", "optim.SGD(net.parameters(), lr=0.01, momentum=0.9)",
     "optimizer momentum rate 0.01 momentum 0.9"},
    {"784", "SGD(learning_rate=0.01, momentum=0.9, nesterov=True)",
     "optimizer nesterov rate 0.01 momentum 0.9"},
    {"784", "AdamW(0.001, weight_decay=0.01)", "optimizer adamw rate 0.001` and `l2 0.01"},
    {"784", "Adam(lr=0.001, betas=(0.5, 0.98), eps=1e-7)",
     "optimizer adam rate 0.001 beta1 0.5 beta2 0.98 eps 1e-7"},
    {"784", "RMSprop(lr=0.01, alpha=0.95)", "optimizer rmsprop rate 0.01 beta2 0.95"},
    {"784", "optimizer Adam rate 0.01 beta1 0.8", "optimizer adam rate 0.01 beta1 0.8"},
    {"784", "optimizer sgd rate 0.05 momentum 0.9", "optimizer momentum rate 0.05 momentum 0.9"},
    {"784", "SGD(net.parameters(), 0.1, 0.9)", "optimizer momentum rate 0.1 momentum 0.9"},
    {"784", "optimizer adam lr 0.001 betas (0.9, 0.98)", "optimizer adam rate 0.001 beta1 0.9 beta2 0.98"},
    {"784", "CosineAnnealingLR(optimizer, T_max=10, eta_min=0.001)", "schedule cosine to 0.001"},
    {"784", "Adam(1e-3, clipnorm=1.0)", "optimizer adam rate 1e-3` and `clip 1.0"},
    {"784", "Dense(64, kernel_regularizer=l2(0.01))", "dense 64` and `l2 0.02"},
    {"784", "Dense(64, kernel_initializer='he_normal', activation='relu')", "dense 64 relu init he"},
    {"784", "Dense(64, kernel_initializer=keras.initializers.GlorotUniform())", "dense 64 init xavier"},
    {"784", "dense 64, relu, no-bias", "dense 64 relu no-bias"},
    {"784", "dense 64, init normal 0.1", "dense 64 init normal 0.1"},
    {"784", "batch_size 64", "batch 64"},
    {"784", "batch-size: 64", "batch 64"},
    {"784", "epochs=10", "epochs 10"},
    {"784", "weight_decay 1e-4", "l2 1e-4"},
    {"784", "EarlyStopping(patience=3)", "early-stop 3"},
    {"784", "StepLR(optimizer, step_size=5, gamma=0.5)", "schedule step every 5 factor 0.5"},
};

static shoal_status read_line(const char *input, const char *line, shoal_error *err) {
  shoal_text text;
  shoal_text_init(&text);
  bool is_loss = strncmp(line, "loss", 4) == 0 || strncmp(line, "criterion", 9) == 0;
  bool is_sequence = strncmp(input, "tokens", 6) == 0;
  shoal_text_addf(&text, "input %s\n%s\n%sdense 2\n%s", input, is_loss ? "" : line,
                  is_sequence ? "rnn 4\n" : "", is_loss ? line : "loss cross-entropy");
  shoal_model *model;
  shoal_status status = shoal_model_parse(&model, "x.net", text.bytes, text.length, err);
  if (status == SHOAL_OK) shoal_model_destroy(model);
  shoal_text_release(&text);
  return status;
}

static void lines_of_other_libraries_are_answered_with_ours(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
    shoal_error err;
    char end[160];
    snprintf(end, sizeof end, "; write `%s`", foreign[i].meant);
    assert_int_not_equal(read_line(foreign[i].input, foreign[i].line, &err), SHOAL_OK);
    if (strlen(err.text) < strlen(end) || strcmp(err.text + strlen(err.text) - strlen(end), end) != 0)
      fail_msg("%s: %s", foreign[i].line, err.text);
    if (strchr(foreign[i].meant, '`') == NULL &&
        read_line(foreign[i].input, foreign[i].meant, &err) != SHOAL_OK)
      fail_msg("%s: %s", foreign[i].meant, err.text);
  }
}

static void what_cannot_be_translated_is_answered_with_an_example(void **state) {
  (void)state;
  static const struct {
    const char *line, *end;
  } cases[] = {
      {"Dense(num_classes)", "; write a line like `dense 128 relu`"},
      {"Reshape((3, 8, 8))", "; write a line like `reshape 3x8x8`"},
      {"model = nn.Sequential(nn.Linear(784, 10), nn.ReLU())",
       "from `input 1x28x28` to `loss cross-entropy`"},
      {"import torch", "from `input 1x28x28` to `loss cross-entropy`"},
      {"from torch import nn", "from `input 1x28x28` to `loss cross-entropy`"},
      {"class Net(nn.Module):", "from `input 1x28x28` to `loss cross-entropy`"},
      {"model.compile(optimizer='adam', loss='mse')", "from `input 1x28x28` to `loss cross-entropy`"},
      /* Mistakes in our own words keep their own sentences. */
      {"dropout two", "found 'two'"},
      {"dense 3 rulu", "did you mean 'relu'?"},
      {"fc: dense 10 rulu", "did you mean 'relu'?"},
      {"optimizer adam rat 1", "did you mean 'rate'?"},
      {"l2 x", "found 'x'"},
      {"l2", "found the end of the line"},
      {"relu: dense 3", "cannot be a name"},
      {"conv 1 20 5", "; write a line like `conv 20 5x5 relu`"},
      /* Shapes are read whole. */
      {"input (1, 28, 28)", "; write `input 1x28x28`"},
      {"input 28,28", "; write `input 1x28x28` or `input sequence 28x28`"},
      {"input 1 28 28", "; write `input 1x28x28`"},
      /* What belongs to the command. */
      {"validation_split 0.2", "; give `--valid 0.2` to shoal train"},
      {"data mnist", "; give `--data SET` to shoal train"},
      {"input_shape=(28, 28, 1)", "; write `input 1x28x28`"},
      {"lr 0.1", "; write `rate 0.1` behind the name on the `optimizer` line"},
      {"learning-rate = 0.1", "; write `rate 0.1` behind the name on the `optimizer` line"},
      /* What would change the network is not left out in silence. */
      {"Dense(64, activity_regularizer=l1(0.1))",
       "; write `dense 64`; `dense` has no `activity_regularizer=l1(0.1)`"},
      {"Dense(64, activation='selu')", "'Dense(64,'; `dense` has no `activation='selu'`"},
      {"Conv2d(4, 8, 3, groups=4)", "; `conv` has no `groups=4`"},
      {"Conv2d(4, 8, 3, dilation=(2, 2))", "; `conv` has no `dilation=(2, 2)`"},
      {"nn.AdaptiveAvgPool2d(7)", "; `global-pool` has no `output_size=7`"},
      {"nn.LSTM(8, 64, dropout=0.2)", "; `lstm` has no `dropout=0.2`"},
      {"nn.LeakyReLU(0.2)", "; `leaky-relu` has no `negative_slope=0.2`"},
      {"ELU(alpha=0.5)", "; `elu` has no `alpha=0.5`"},
      {"RMSprop(lr=0.01, momentum=0.9)", "; `rmsprop` has no `momentum=0.9`"},
      {"NAdam(lr=0.01)", "; write a line like `optimizer adam rate 0.001`"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    shoal_error err;
    assert_int_not_equal(read_line("784", cases[i].line, &err), SHOAL_OK);
    size_t length = strlen(err.text), end = strlen(cases[i].end);
    if (length < end || strcmp(err.text + length - end, cases[i].end) != 0)
      fail_msg("%s: %s", cases[i].line, err.text);
  }
  shoal_model *model;
  shoal_error err;
  const char text[] = "input 4\ndense 2\nloss cross-entropy";
  assert_int_equal(shoal_model_parse(&model, "x.net", text, strlen(text), &err), SHOAL_OK);
  assert_int_not_equal(shoal_model_set(model, "--optimizer", "optimizer", "Adam lr=0.01", &err), SHOAL_OK);
  assert_string_equal(err.text, "--optimizer: unknown optimizer 'Adam'; write `adam rate 0.01`");
  shoal_model_destroy(model);
}

static void a_missing_file_is_not_found(void **state) {
  (void)state;
  shoal_model *model = (shoal_model *)1;
  shoal_error err;
  assert_true(shoal_model_load(&model, "/nowhere/at-all.net", &err) != SHOAL_OK);
  assert_null(model);
  assert_non_null(strstr(err.text, "/nowhere/at-all.net"));
  assert_true(shoal_model_load(&model, "/nowhere/lenet5.onnx", &err) != SHOAL_OK);
  assert_string_equal(err.text, "/nowhere/lenet5.onnx: Shoal writes ONNX and does not read it");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_mistake_is_named_with_its_place),
      cmocka_unit_test(an_unknown_layer_is_answered_with_all_that_there_are),
      cmocka_unit_test(a_zero_byte_is_refused_even_in_a_comment),
      cmocka_unit_test(what_is_over_a_limit_is_refused),
      cmocka_unit_test(a_long_word_is_shown_in_part),
      cmocka_unit_test(lines_of_other_libraries_are_answered_with_ours),
      cmocka_unit_test(what_cannot_be_translated_is_answered_with_an_example),
      cmocka_unit_test(a_missing_file_is_not_found),
  };
  return RUN_TESTS(tests);
}
